package eventbus

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"parley"
	"parley/dialect"
	"parley/port"
)

// started is the answer to a message: either a run answers it at once, or it
// waits for the next turn of the open run.
type started struct {
	Status  string           `json:"status"` // started, queued
	Session parley.SessionID `json:"session_id"`
	Run     string           `json:"run_id,omitempty"`
}

// chat serves POST /api/chat. A body with a threadId is for the thread chat
// dialect.
func (h *Handler) chat(w http.ResponseWriter, r *http.Request) {
	who, stay, err := h.Guard.Begin(r, "")
	var q request
	if err == nil {
		q, err = h.read(w, r, who, dialect.MaxMessage)
	}
	var answer started
	switch {
	case err != nil:
	case q.body.Has("threadId"):
		var visit port.Visit
		if visit, err = stay(); err == nil {
			h.ThreadChat(w, r, visit, q.body)
			return
		}
	default:
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
		do.Name = labelOf(name)
	case key != "": // the same key opens the same session
		ids = []parley.SessionID{dialect.SessionFor(r.who, "eventbus key", key)}
	default:
		ids = []parley.SessionID{parley.SessionID(uuid.NewString())}
	}
	if err := h.may(r, parley.ActMessage, port.OwnSessions); err != nil {
		return a, err
	}
	// Check the agent here: if Submit answers "not found", the next session is
	// tried, but a missing agent must fail.
	do.Project = r.only.Root
	if do.Agent.Name != "" {
		root := r.project.Root
		if m, err := h.find(r.Context(), r.who, ids); err == nil && do.Project == "" {
			root = m.Project
		}
		if _, err := h.Agents.Of(root).Agent(r.who.Tenant, do.Agent.Name); err != nil {
			return a, err
		}
	}
	receipt, err := h.submit(r, ids, do)
	if err != nil {
		return a, err
	}
	a = started{Status: "queued", Session: cmp.Or(parley.SessionID(do.Name), receipt.Session)}
	if err := dialect.ReadLog(r.Context(), h.Door, r.who, receipt.Session, receipt.First, receipt.Last,
		func(e parley.Event) {
			if _, starts := e.Body.(parley.RunStarted); starts {
				a.Status, a.Run = "started", runName(e.Session, e.Run)
			}
		}); err != nil {
		h.Log.Warn("the status of a message cannot be read", "session", receipt.Session, "error", err)
	}
	return a, nil
}

// decodeChat decodes a message and the name of its session.
func decodeChat(o dialect.Object) (do parley.SubmitInput, session string, err error) {
	do = parley.SubmitInput{Busy: parley.Steer, Open: true}
	fields := dialect.Fields{{"message", &do.Content}, {"agent_id", &do.Agent.Name}, {"session_id", &session},
		{"model", &do.Model}}
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
	do.Images, err = dialect.ReadImages(o)
	return do, session, err
}

var address = regexp.MustCompile(`(?s)^\s*@([A-Za-z0-9_-]+)\s+(\S.*)$`)

// addressed splits a message to another agent: @agent and the text.
func addressed(content string) (agent, rest string, ok bool) {
	m := address.FindStringSubmatch(content)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}
