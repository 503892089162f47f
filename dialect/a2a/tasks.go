package a2a

import (
	"context"
	"time"

	"parley"
	"parley/dialect"
	"parley/port"
)

// watch follows a task from its first event and maintains its state, as a client does.
type watch struct {
	follower port.Follower
	view     View
	agent    string
	input    parley.InputID // zero: the first input
	task     task
	state    state
	// immediately: the client does not wait for the end of the task. answered: the client has answered the task, and
	// the state is from after that answer.
	immediately, answered bool
}

// follow follows a session from the event with seq first. The task is the one of the first input from there.
func (c *call) follow(ctx context.Context, session parley.SessionID, first parley.Seq) (*watch, error) {
	f, err := c.door.Follow(ctx, c.who, port.Scope{Session: session, Below: true},
		port.Cursor{After: int64(first) - 1})
	if err != nil {
		return nil, err
	}
	return &watch{follower: f, view: View{Session: session, shape: c.shape}, agent: c.agent}, nil
}

// watch finds a task and reads its events so far.
func (c *call) watch(ctx context.Context, session parley.SessionID, input parley.InputID) (*watch, error) {
	name, err := dialect.NameOf(ctx, c.door, c.who, session)
	var w *watch
	if err == nil {
		w, err = c.follow(ctx, session, parley.Seq(input))
	}
	if err != nil {
		if code := parley.CodeOf(err); code == parley.CodeNotFound || code == parley.CodeResync {
			err = errNoTask
		}
		return nil, err
	}
	w.view.Context, w.input = name, input
	if err = w.catchUp(ctx); err == nil && !w.known() {
		err = errNoTask
	}
	if err != nil {
		w.follower.Close()
		return nil, err
	}
	return w, nil
}

// see returns the events of the task that an event of the log results in.
func (w *watch) see(e parley.Event) (shown []event) {
	if b, ok := e.Body.(parley.InputReceived); ok && e.Session == w.view.Session {
		switch input := parley.InputID(e.Seq); {
		case w.input == 0:
			w.input = input
		case w.input == input && b.Agent.Name != w.agent:
			w.input = -1 // the task belongs to another agent
		}
	}
	var all []dialect.Frame
	w.view, all = Project(w.view, e)
	for _, f := range all {
		if made := f.Body.(event); made.of == w.input {
			w.task.apply(made)
			if made.state != "" {
				w.state = made.state
			}
			shown = append(shown, made)
		}
	}
	return shown
}

// known reports whether the first event of the task was seen.
func (w *watch) known() bool { return w.task.ID != "" }

// returns reports whether a client that waits for the task can be answered.
func (w *watch) returns() bool { return w.known() && (w.immediately || w.state.stops()) }

// cards returns the open cards of the task.
func (w *watch) cards() []dialect.Card {
	if w.state != inputRequired {
		return nil
	}
	return w.view.cards()
}

// catchUp processes the events that are in the log now, up to the end of the task.
func (w *watch) catchUp(ctx context.Context) error {
	first := true
	return dialect.CatchUp(ctx, w.follower, func(i *port.Item) bool {
		w.see(i.Event)
		// If the first event does not create the task, there is no such task.
		goOn := (!first || w.known()) && !w.state.terminal()
		first = false
		return goOn
	})
}

// next waits for events and processes them.
func (w *watch) next(ctx context.Context) error {
	items, err := w.follower.Next(ctx)
	for _, i := range items {
		if w.see(i.Event); w.returns() {
			break
		}
	}
	return err
}

// cut returns the task with at most the history that the client wants.
func (w *watch) cut(history *int, artifacts bool) *task {
	t := w.task
	if history != nil {
		t.History = t.History[max(len(t.History)-max(*history, 0), 0):]
	}
	if !artifacts {
		t.Artifacts = nil
	}
	return &t
}

// get returns a task.
func (c *call) get(ctx context.Context) (*task, error) {
	session, input, err := taskOf(c.params)
	if err != nil {
		return nil, err
	}
	history, err := historyOf(c.params)
	if err != nil {
		return nil, err
	}
	w, err := c.watch(ctx, session, input)
	if err != nil {
		return nil, err
	}
	defer w.follower.Close()
	return w.cut(history, true), nil
}

// cancel cancels a task and returns it.
func (c *call) cancel(ctx context.Context) (*task, error) {
	session, input, err := taskOf(c.params)
	if err != nil {
		return nil, err
	}
	w, err := c.watch(ctx, session, input)
	if err != nil {
		return nil, err
	}
	defer w.follower.Close()
	ended := refusal(codeCancelable, "This task has ended: it is %s.", w.state)
	if w.state.terminal() {
		return nil, ended
	}
	_, err = c.door.Submit(ctx, c.who, parley.Command{Session: session, Via: parley.ViaHTTP,
		Do: parley.CancelRun{Input: input}})
	if parley.CodeOf(err) == parley.CodeNotFound && err != nil {
		return nil, ended
	}
	if err == nil {
		err = w.catchUp(ctx)
	}
	return w.cut(nil, true), err
}

// taskList is one page of tasks.
type taskList struct {
	Tasks         []*task `json:"tasks"`
	NextPageToken string  `json:"nextPageToken"`
	PageSize      int     `json:"pageSize"`
	TotalSize     int     `json:"totalSize"`
}

// mostPages is the maximum number of pages of runs that list reads.
const mostPages = 10

// list returns the tasks of the agent, newest first. If there are very many runs, the list continues on another page,
// and the total counts only the runs that were read.
func (c *call) list(ctx context.Context) (*taskList, error) {
	q, err := c.shape.decodeWanted(c.params)
	if err != nil {
		return nil, err
	}
	runs := port.RunQuery{Agent: c.agent, Before: q.before, Project: c.project, Limit: maxPage}
	if q.context != "" {
		if runs.Session, _, err = dialect.SessionNamed(c.who, q.context); err != nil {
			return nil, err
		}
	}
	answer := &taskList{Tasks: []*task{}, PageSize: q.size}
	for range mostPages {
		page, err := c.door.Runs(ctx, c.who, runs)
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			runs.Before = r.StartedAt
			if !q.lists(r) {
				continue
			}
			if answer.TotalSize++; answer.TotalSize > q.size {
				continue
			}
			w, err := c.ofRun(ctx, r)
			if err != nil {
				return nil, err
			}
			answer.Tasks = append(answer.Tasks, w.cut(q.history, q.artifacts))
			w.follower.Close()
			answer.NextPageToken = r.StartedAt.Format(time.RFC3339Nano)
		}
		if len(page) < runs.Limit { // this was the last page of runs
			if answer.TotalSize == len(answer.Tasks) {
				answer.NextPageToken = ""
			}
			return answer, nil
		}
	}
	if len(answer.Tasks) < q.size {
		answer.NextPageToken = runs.Before.Format(time.RFC3339Nano)
	}
	return answer, nil
}

// ofRun returns the task of a run.
func (c *call) ofRun(ctx context.Context, r port.RunInfo) (*watch, error) {
	var input parley.InputID
	err := dialect.ReadLog(ctx, c.door, c.who, r.Session, parley.Seq(r.Run), parley.Seq(r.Run), func(e parley.Event) {
		if b, ok := e.Body.(parley.RunStarted); ok {
			input = b.Input
		}
	})
	if err != nil {
		return nil, err
	}
	return c.watch(ctx, r.Session, input)
}

// lists reports whether a run matches the filter.
func (q wanted) lists(r port.RunInfo) bool {
	st, at := working, r.StartedAt
	switch {
	case r.Outcome != "":
		st, _ = goodbyeFor(parley.RunFinished{Outcome: r.Outcome})
		at = r.EndedAt
	case r.Waiting:
		st = inputRequired
	}
	return (q.state == "" || q.state == st) && !at.Before(q.since)
}
