package eventbus

import (
	"cmp"
	"slices"
	"strings"

	"parley"
	"parley/port"
)

// run is a run as this dialect defines it.
type run struct {
	ID       string           `json:"run_id"`
	RepoPath string           `json:"repo_path"`
	Session  parley.SessionID `json:"session_id"`
	Agent    string           `json:"agent_id"`
	Kind     string           `json:"agent_kind"` // main, subagent
	Parent   *string          `json:"parent_run_id"`
	Status   string           `json:"status"` // running, completed, failed, cancelled
	Detail   *string          `json:"detail"`
	Started  int64            `json:"started_at"` // seconds
	Ended    *int64           `json:"ended_at"`
}

// runOf converts a run. Sessions without a project belong to the first.
func runOf(first string, i port.RunInfo) run {
	r := run{ID: runName(i.Session, i.Run), RepoPath: cmp.Or(i.Project, first), Session: i.Session, Agent: i.Agent,
		Kind:    "main",
		Started: i.StartedAt.Unix()}
	if i.Parent != nil {
		parent := runName(i.Parent.Session, i.Parent.Run)
		r.Parent, r.Kind = &parent, "subagent"
	}
	detail := i.Message
	switch i.Outcome {
	case "":
		if r.Status = "running"; i.Waiting {
			detail = "waiting for a person"
		}
	case parley.Completed:
		r.Status = "completed"
	case parley.Cancelled:
		r.Status, detail = "cancelled", "cancelled by user"
	default:
		r.Status = "failed"
		if detail == "" {
			detail = string(i.Outcome)
		}
	}
	if detail != "" {
		r.Detail = &detail
	}
	if i.Outcome != "" {
		ended := i.EndedAt.Unix()
		r.Ended = &ended
	}
	return r
}

const (
	maxRuns = 200  // in a list
	maxTree = 1000 // runs that one request may cancel
)

// listRuns lists runs, newest first.
func (h *Handler) listRuns(r request) (any, error) {
	q := port.RunQuery{Project: r.only, Limit: maxRuns}
	if name := r.URL.Query().Get("session_id"); name != "" {
		ids, err := sessionsOf(r.who, name)
		if err != nil {
			return nil, err
		}
		m, err := h.find(r.Context(), r.who, ids)
		isID := parley.SessionID(strings.ToLower(strings.TrimSpace(name))).Valid()
		switch {
		case err != nil && parley.CodeOf(err) == parley.CodeNotFound && !isID:
			return []run{}, h.may(r, parley.ActRead, port.OwnSessions) // a name that has no session yet
		case err != nil:
			return nil, err
		}
		q.Session = m.ID
	}
	list, err := h.Door.Runs(r.Context(), r.who, q)
	shown := h.runsOf(r.who, list)
	if label := labelOf(r.URL.Query().Get("session_id")); label != "" {
		for i := range shown {
			shown[i].Session = parley.SessionID(label)
		}
	}
	return shown, err
}

func (h *Handler) runsOf(who port.Principal, list []port.RunInfo) []run {
	shown, first := []run{}, h.firstRoot(who.Tenant)
	for _, i := range list {
		shown = append(shown, runOf(first, i))
	}
	return shown
}

var unknownRun = parley.Errorf(parley.CodeNotFound, "Unknown run_id")

// runNamed returns the run that a request names, if the principal may read it. It refuses a run of another project than
// the one the request names.
func (h *Handler) runNamed(r request) (i port.RunInfo, err error) {
	name, err := r.need("run_id")
	if err != nil {
		return i, err
	}
	session, id, ok := parseRun(name)
	if !ok {
		return i, unknownRun
	}
	list, err := h.Door.Runs(r.Context(), r.who, port.RunQuery{Session: session, Run: id, Limit: 1})
	if err != nil {
		return i, err
	}
	if len(list) == 0 {
		return i, unknownRun
	}
	return list[0], r.belongs(list[0].Project)
}

// listChildren lists the runs that a run has delegated to, oldest first.
func (h *Handler) listChildren(r request) (any, error) {
	i, err := h.runNamed(r)
	if err != nil {
		return nil, err
	}
	list, err := h.children(r, i, false)
	return h.runsOf(r.who, list), err
}

func (h *Handler) children(r request, of port.RunInfo, open bool) ([]port.RunInfo, error) {
	list, err := h.Door.Runs(r.Context(), r.who,
		port.RunQuery{Parent: &parley.Origin{Session: of.Session, Run: of.Run}, Open: open, Limit: maxRuns})
	slices.Reverse(list)
	return list, err
}

// cancel cancels a run and all runs below it. Ended and unknown runs are not an
// error: the answer lists the cancelled runs.
func (h *Handler) cancel(r request) (any, error) {
	if err := h.may(r, parley.ActMessage, port.OwnSessions); err != nil {
		return nil, err
	}
	var stopped struct {
		Cancelled []string `json:"cancelled_run_ids"`
	}
	stopped.Cancelled = []string{}
	top, err := h.runNamed(r)
	switch {
	case err != nil && parley.CodeOf(err) == parley.CodeNotFound, err == nil && top.Outcome != "":
		return stopped, nil
	case err != nil:
		return nil, err
	}
	// Start at the top, so that no run delegates meanwhile. The loop appends to open.
	open := []port.RunInfo{top}
	for n := 0; n < len(open) && n < maxTree; n++ {
		below, err := h.children(r, open[n], true)
		if err != nil {
			return nil, err
		}
		open = append(open, below...)
		_, err = h.submit(r, []parley.SessionID{open[n].Session}, parley.CancelRun{Run: open[n].Run})
		switch {
		case err == nil, parley.CodeOf(err) == parley.CodeNotFound && n > 0: // it was cancelled with its parent
			stopped.Cancelled = append(stopped.Cancelled, runName(open[n].Session, open[n].Run))
		case parley.CodeOf(err) == parley.CodeNotFound: // it has just ended
			return stopped, nil
		default:
			return nil, err
		}
	}
	return stopped, nil
}
