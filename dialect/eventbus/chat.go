package eventbus

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"parley"
	"parley/dialect"
)

const (
	maxImages     = 4
	maxImageBytes = 4 << 20 // of all of them
	// maxChat has room for them as base64, and for a message that is escaped.
	maxChat = 2*parley.MaxContent + maxImageBytes/3*4 + 64<<10
)

// started is the answer to a message: a run answers it at once, or it waits for
// the next turn of the one that is going on.
type started struct {
	Status  string           `json:"status"` // started, queued
	Session parley.SessionID `json:"session_id"`
	Run     string           `json:"run_id,omitempty"`
}

// chat serves POST /api/chat.
func (h *Handler) chat(w http.ResponseWriter, r *http.Request) {
	q, err := h.ask(w, r, maxChat)
	if err == nil && q.body.Has("threadId") {
		err = dialect.Invalid(
			"threadId is of another protocol; send message, and session_id to go on with a conversation")
	}
	var answer started
	if err == nil {
		answer, err = h.say(q)
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	dialect.WriteJSON(w, http.StatusOK, answer)
}

func (h *Handler) say(r request) (a started, err error) {
	if !r.body.Has("message") {
		return a, dialect.Invalid("message is missing")
	}
	do, name, err := decodeChat(r.body)
	if err != nil {
		return a, err
	}
	var ids []parley.SessionID
	switch key := r.Header.Get("Idempotency-Key"); {
	case name != "":
		if ids, err = sessionsOf(r.who, name); err != nil {
			return a, err
		}
	case key != "": // the same key opens the same session
		ids = []parley.SessionID{dialect.SessionFor(r.who, "eventbus key", key)}
	default:
		ids = []parley.SessionID{parley.SessionID(uuid.NewString())}
	}
	if err := h.may(r, parley.ActMessage, parley.OwnSessions); err != nil {
		return a, err
	}
	// Asked here, because a session that is not there is looked for elsewhere,
	// and an agent is not.
	if do.Agent.Name != "" {
		if _, err := h.Agents.Agent(r.who.Tenant, do.Agent.Name); err != nil {
			return a, err
		}
	}
	receipt, err := h.submit(r, ids, do)
	if err != nil {
		return a, err
	}
	a = started{Status: "queued", Session: receipt.Session}
	if err := dialect.ReadLog(r.Context(), h.Door, r.who, receipt.Session, receipt.First, receipt.Last,
		func(e parley.Event) {
			if _, starts := e.Body.(parley.RunStarted); starts {
				a.Status, a.Run = "started", runName(e.Session, e.Run)
			}
		}); err != nil {
		h.Log.Warn("what became of a message cannot be read", "session", receipt.Session, "error", err)
	}
	return a, nil
}

// decodeChat reads a message and the name of its session.
func decodeChat(o dialect.Object) (do parley.SubmitInput, session string, err error) {
	do = parley.SubmitInput{Busy: parley.Steer, Open: true}
	fields := dialect.Fields{{"message", &do.Content}, {"agent_id", &do.Agent.Name}, {"session_id", &session}}
	if err := o.Strings(fields); err != nil {
		return do, "", dialect.Invalid("%s", err)
	}
	session, do.Agent.Name = strings.TrimSpace(session), strings.TrimSpace(do.Agent.Name)
	if agent, rest, ok := addressed(do.Content); ok {
		do.Agent.Name, do.Content = agent, rest
	}
	do.Content = strings.TrimSpace(parley.CleanText(do.Content))
	if parley.IsBlank(do.Content) {
		return do, "", dialect.Invalid("message is empty")
	}
	mode, err := o.String("mode")
	if err != nil {
		return do, "", dialect.Invalid("%s", err)
	}
	if do.Mode = parley.RunMode(mode); mode != "" && do.Mode != parley.ModePlan {
		return do, "", dialect.Invalid("mode must be plan, or left out")
	}
	do.Images, err = images(o)
	return do, session, err
}

var address = regexp.MustCompile(`(?s)^\s*@([A-Za-z0-9_-]+)\s+(\S.*)$`)

// addressed reads a message to another agent: @agent and something to say.
func addressed(content string) (agent, rest string, ok bool) {
	m := address.FindStringSubmatch(content)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// images reads pictures: data URLs or bare base64. What they are is seen in
// them, not taken from the URL.
func images(o dialect.Object) (list []parley.Image, err error) {
	var given []string
	if err := o.Into("images", &given, "a list of base64 strings or data URLs"); err != nil {
		return nil, dialect.Invalid("%s", err)
	}
	if len(given) > maxImages {
		return nil, dialect.Invalid("images: at most %d", maxImages)
	}
	all := 0
	for i, s := range given {
		if rest, isURL := strings.CutPrefix(s, "data:"); isURL {
			head, encoded, _ := strings.Cut(rest, ",")
			if !strings.HasSuffix(head, ";base64") {
				return nil, dialect.Invalid("images[%d] must be a data URL in base64", i)
			}
			s = encoded
		}
		data, err := base64.StdEncoding.DecodeString(s)
		if err != nil || len(data) == 0 {
			return nil, dialect.Invalid("images[%d] is not base64", i)
		}
		if all += len(data); all > maxImageBytes {
			return nil, parley.Errorf(parley.CodeTooLarge, "images: more than %d bytes in all.", maxImageBytes)
		}
		kind := imageType(data)
		if kind == "" {
			return nil, dialect.Invalid("images[%d] is no PNG, JPEG, GIF or WebP", i)
		}
		list = append(list, parley.Image{Type: kind, Data: data})
	}
	return list, nil
}

func imageType(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) >= 12 && bytes.HasPrefix(data, []byte("RIFF")) && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}
