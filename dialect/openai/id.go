package openai

import (
	"strconv"
	"strings"

	"parley"
)

// The ids of this dialect are references into the log, so that no table is needed: a prefix, the digits of the
// session's id, and the seq of an event.

func idOf(prefix string, session parley.SessionID, seq parley.Seq) string {
	return prefix + "_" + strings.ReplaceAll(string(session), "-", "") + "_" + strconv.FormatInt(int64(seq), 10)
}

// parseID parses an id made by idOf.
func parseID(prefix, id string) (parley.SessionID, parley.Seq, bool) {
	rest, ok := strings.CutPrefix(id, prefix+"_")
	digits, number, _ := strings.Cut(rest, "_")
	if !ok || len(digits) != 32 {
		return "", 0, false
	}
	session := parley.SessionID(digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" +
		digits[20:])
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 1 || !session.Valid() || idOf(prefix, session, parley.Seq(seq)) != id {
		return "", 0, false
	}
	return session, parley.Seq(seq), true
}

// A responseID identifies a response by the input that its run answers and the part of the run. Each time a run waits
// for an answer, it gets another part.
type responseID struct {
	session parley.SessionID
	input   parley.InputID
	part    int
}

func (r responseID) String() string { return r.as("resp") }

func (r responseID) as(prefix string) string {
	id := idOf(prefix, r.session, parley.Seq(r.input))
	if r.part > 0 {
		id += "_" + strconv.Itoa(r.part)
	}
	return id
}

func parseResponseID(id string) (r responseID, ok bool) {
	whole := id
	if strings.Count(id, "_") == 3 {
		i := strings.LastIndexByte(id, '_')
		part, err := strconv.Atoi(id[i+1:])
		if err != nil {
			return r, false
		}
		r.part, id = part, id[:i]
	}
	session, seq, ok := parseID("resp", id)
	r.session, r.input = session, parley.InputID(seq)
	return r, ok && r.String() == whole
}
