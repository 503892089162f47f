package native

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"parley"
	"parley/dialect"
	"parley/port"
)

// Runs and cards of all sessions. The id of each is a reference to its session and seq, as in the routes that change
// it.

type runLine struct {
	ID string `json:"id"`
	port.RunInfo
}

func (h *Handler) listRuns(r request) (int, any, error) {
	q := r.URL.Query()
	limit, err := limitOf(r)
	if err != nil {
		return 0, nil, err
	}
	query := port.RunQuery{Session: parley.SessionID(q.Get("session")), Agent: q.Get("agent"),
		Open: q.Get("open") == "1", Project: r.only, Limit: limit}
	if query.Before, err = r.time("before"); err != nil {
		return 0, nil, err
	}
	if parent := q.Get("parent"); parent != "" {
		session, run, ok := parley.ParseRef(parent)
		if !ok {
			return 0, nil, errNoRun
		}
		query.Parent = &parley.Origin{Session: session, Run: parley.RunID(run)}
	}
	runs, err := h.Door.Runs(r.Context(), r.who, query)
	list := []runLine{}
	for _, run := range runs {
		list = append(list, lineOf(run))
	}
	return http.StatusOK, map[string]any{"runs": list}, err
}

func lineOf(run port.RunInfo) runLine {
	return runLine{parley.Ref(run.Session, parley.Seq(run.Run)), run}
}

var errNoRun = parley.Errorf(parley.CodeNotFound, "There is no such run.")

func (h *Handler) getRun(r request) (int, any, error) {
	session, run, err := r.ref(errNoRun)
	if err != nil {
		return 0, nil, err
	}
	runs, err := h.Door.Runs(r.Context(), r.who, port.RunQuery{Session: session, Run: parley.RunID(run), Limit: 1})
	one, err := only(runs, err, errNoRun)
	return http.StatusOK, lineOf(one), err
}

func (h *Handler) cancelOneRun(r request) (int, any, error) {
	session, run, err := r.ref(errNoRun)
	if err != nil {
		return 0, nil, err
	}
	receipt, err := h.submit(r, string(session), parley.CancelRun{Run: parley.RunID(run)})
	return http.StatusAccepted, receipt, err
}

// undoRun undoes the file changes of a run.
func (h *Handler) undoRun(r request) (int, any, error) {
	session, run, err := r.ref(errNoRun)
	if err != nil {
		return 0, nil, err
	}
	receipt, err := h.submit(r, string(session), parley.UndoChanges{Run: parley.RunID(run)})
	return http.StatusAccepted, receipt, err
}

type cardLine struct {
	ID string `json:"id"`
	port.CardInfo
}

// listCards returns a handler that lists the open cards of one kind under a name.
func (h *Handler) listCards(kind parley.CardKind, name string) func(request) (int, any, error) {
	return func(r request) (int, any, error) {
		q := r.URL.Query()
		limit, err := limitOf(r)
		if err != nil {
			return 0, nil, err
		}
		if status := q.Get("status"); kind == parley.CardCall && status != "" && status != "unknown" {
			return 0, nil, dialect.Invalid("status must be unknown: only calls of unknown outcome wait for a person; " +
				"the others are in the log")
		}
		cards, err := h.Door.Cards(r.Context(), r.who, port.CardQuery{Session: parley.SessionID(q.Get("session")),
			Kind: kind, Project: r.only, Limit: limit})
		list := []cardLine{}
		for _, c := range cards {
			list = append(list, cardLine{parley.Ref(c.Session, c.Seq), c})
		}
		return http.StatusOK, map[string]any{name: list}, err
	}
}

// ref parses the session and seq in the path. none is the error for an invalid reference.
func (r request) ref(none error) (parley.SessionID, parley.Seq, error) {
	session, seq, ok := parley.ParseRef(r.PathValue("id"))
	if !ok {
		return "", 0, none
	}
	return session, seq, nil
}

// only returns the first row. none is the error if there is no row.
func only[T any](rows []T, err, none error) (row T, _ error) {
	if err != nil || len(rows) == 0 {
		return row, cmp.Or(err, none)
	}
	return rows[0], nil
}

// time parses a time in the query; absent is zero.
func (r request) time(name string) (t time.Time, err error) {
	if given := r.URL.Query().Get(name); given != "" {
		if t, err = time.Parse(time.RFC3339, given); err != nil {
			err = dialect.Invalid("%s must be a time like 2026-01-02T15:04:05Z", name)
		}
	}
	return t, err
}

// limitOf returns the number of rows to return; the default is 50.
func limitOf(r request) (int, error) {
	limit, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("limit"), "50"))
	if err != nil || limit < 1 {
		return 0, dialect.Invalid("limit must be a number from 1 to 200")
	}
	return min(limit, 200), nil
}
