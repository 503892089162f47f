package agui

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

func handler(d port.Door) *Handler {
	return &Handler{Door: d, Agents: dialecttest.Agents{"scout"}, Guard: dialecttest.Guard{Principal: ann},
		Log: slog.New(slog.DiscardHandler)}
}

// request sends a request and returns the status, and the ids and events of the stream or the refusal.
func request(d port.Door, method, path, body string) (status int, ids, events []string, whole bool) {
	a := dialecttest.Ask(handler(d).Routes(), method, path, body)
	return a.Status, a.IDs, a.Data, a.Whole
}

// shownOf returns all events that a thread shows of a log.
func shownOf(log []parley.Event, thread string) (all []string) {
	v := View{Thread: thread, Session: log[0].Session}
	for _, e := range log {
		var frames []dialect.Frame
		v, frames = Project(v, e)
		for _, f := range frames {
			all = append(all, string(dialect.Encode(f.Body)))
		}
	}
	return all
}

func logs(t *testing.T) (list [][]parley.Event) {
	return slices.DeleteFunc(dialecttest.Logs(t), func(log []parley.Event) bool { return log[0].Seq != 1 })
}

// TestWhereAThreadIsFollowedFrom: a client that resumes after any event of a thread gets exactly the events after it.
func TestWhereAThreadIsFollowedFrom(t *testing.T) {
	for n, log := range logs(t) {
		thread := string(log[0].Session)
		path := "/api/agui/threads/" + thread + "/stream"
		all := shownOf(log, thread)
		_, ids, events, _ := request(&dialecttest.LogDoor{Log: log, Happened: len(log)}, "GET",
			path+"?last_event_id="+firstID(log), "")
		if want := all[min(1, len(all)):]; !slices.Equal(events, want) {
			t.Fatalf("log %d: after its first event the thread shows\n%s\nand not\n%s", n, strings.Join(events, "\n"),
				strings.Join(want, "\n"))
		}
		for i, id := range ids {
			_, _, rest, _ := request(&dialecttest.LogDoor{Log: log, Happened: len(log)}, "GET",
				path+"?last_event_id="+id, "")
			if !slices.Equal(rest, events[i+1:]) && len(rest)+len(events[i+1:]) > 0 {
				t.Errorf("log %d: after %s comes\n%s\nand not\n%s", n, id, strings.Join(rest, "\n"),
					strings.Join(events[i+1:], "\n"))
			}
		}
	}
}

// firstID returns the id of the first event that a thread shows.
func firstID(log []parley.Event) string {
	for _, e := range log {
		if _, ok := e.Body.(parley.RunStarted); ok {
			return fmt.Sprintf("epoch-%d.%d.0", e.Seq, e.Position)
		}
	}
	return ""
}

func TestTheOpenRunIsShownFromItsStart(t *testing.T) {
	for n, log := range logs(t) {
		for head := 1; head <= len(log); head++ {
			d := &dialecttest.LogDoor{Log: log, Happened: head}
			m, err := d.Session(t.Context(), ann, log[0].Session)
			if err != nil {
				t.Fatal(err)
			}
			_, _, events, _ := request(d, "GET", "/api/agui/threads/"+string(m.ID)+"/stream", "")
			all := shownOf(log[:head], string(m.ID))
			switch {
			case m.Run == 0 && len(events) > 0:
				t.Errorf("log %d, %d events: no run is open, and shown is %q", n, head, events)
			case m.Run != 0 && (len(events) == 0 || !strings.HasPrefix(events[0], `{"type":"RUN_STARTED"`) ||
				!slices.Equal(events, all[len(all)-len(events):])):
				t.Errorf("log %d, %d events: shown is\n%s\nof\n%s", n, head, strings.Join(events, "\n"),
					strings.Join(all, "\n"))
			}
		}
	}
}

func TestCursorsThatAreGone(t *testing.T) {
	log := logs(t)[0]
	for _, id := range []string{"other-3.3.0", "epoch-3.3", "epoch-3.3.x", "epoch-3.-3.0", "epoch-2.3.0",
		"epoch-3.9999.0",
		"epoch-9999.3.0", "7", "epoch"} {
		status, _, events, _ := request(&dialecttest.LogDoor{Log: log, Happened: len(log)}, "GET",
			"/api/agui/threads/"+string(log[0].Session)+"/stream?last_event_id="+id, "")
		if status != http.StatusGone || len(events) != 1 || !strings.Contains(events[0], `"code":"resync"`) {
			t.Errorf("%s: %d %q", id, status, events)
		}
	}
}

// TestCursorsOfDeletedChunks: after a chunk that was deleted, no part of its text comes again: the cursor is gone.
func TestCursorsOfDeletedChunks(t *testing.T) {
	gone := 0
	for _, log := range logs(t) {
		finished := map[parley.OutputID]bool{} // outputs of the thread's own session
		for _, e := range log {
			if b, ok := e.Body.(parley.OutputFinished); ok && e.Session == log[0].Session {
				finished[b.Output] = true
			}
		}
		deleted := func(e parley.Event) bool {
			b, ok := e.Body.(parley.OutputAppended)
			return ok && e.Session == log[0].Session && finished[b.Output]
		}
		kept := slices.DeleteFunc(slices.Clone(log), deleted)
		for _, e := range log {
			if !deleted(e) {
				continue
			}
			id := fmt.Sprintf("epoch-%d.%d.0", e.Run, e.Position)
			status, _, events, _ := request(&dialecttest.LogDoor{Log: kept, Happened: len(kept)}, "GET",
				"/api/agui/threads/"+string(log[0].Session)+"/stream?last_event_id="+id, "")
			if status != http.StatusGone || len(events) != 1 || !strings.Contains(events[0], `"code":"resync"`) {
				t.Errorf("%s: %d %q", id, status, events)
			}
			gone++
		}
	}
	if gone < 10 {
		t.Errorf("only %d chunks were deleted", gone)
	}
}

// input returns a RunAgentInput for the thread of a log.
func input(log []parley.Event, more string) string {
	return fmt.Sprintf(`{"threadId":%q,"runId":"r1",%s}`, log[0].Session, more)
}

// TestAnswersContinueTheStream: wherever a run waits, the answer gets the rest, from the next RUN_STARTED on, and a
// message is refused.
func TestAnswersContinueTheStream(t *testing.T) {
	answered := 0
	for n, log := range logs(t) {
		for head := 1; head < len(log); head++ {
			d := &dialecttest.LogDoor{Log: log, Happened: head}
			before, after := shownOf(log[:head], string(log[0].Session)), shownOf(log, string(log[0].Session))
			if len(before) == 0 || !strings.Contains(before[len(before)-1], `"outcome":{"type":"interrupt"`) ||
				len(shownOf(log[:head-1], string(log[0].Session))) == len(before) {
				continue // it does not wait, or already waited before this event
			}
			_, _, events, whole := request(d, "POST", "/api/agui/scout",
				input(log, `"messages":[{"id":"m","role":"user","content":"Hello?"}]`))
			if len(d.Commands) > 0 || !whole || len(events) != 1 || !strings.Contains(events[0], `"code":"conflict"`) {
				t.Errorf("log %d, %d events: a message is answered %q, %+v", n, head, events, d.Commands)
			}
			resume := answersAll(t, before[len(before)-1])
			if !slices.ContainsFunc(log[head:], closesCard) || strings.Contains(strings.Join(before, ""), "paint") {
				continue // the log has no answer, or a client's tool call is open, too
			}
			if status, _, _, _ := request(d, "POST", "/api/agui/nobody", input(log, `"messages":[],"resume":`+
				resume)); status != http.StatusNotFound || len(d.Commands) > 0 {
				t.Errorf("log %d, %d events: an agent that does not exist: %d, %+v", n, head, status, d.Commands)
			}
			_, _, events, _ = request(d, "POST", "/api/agui/scout", input(log, `"messages":[],"resume":`+resume))
			rest := strings.Join(after[len(before):], "\n")
			if slices.ContainsFunc(log[head:], explains) { // other clients see it before the answer
				rest = rest[strings.Index(rest, events[0]):]
			}
			if len(d.Commands) == 0 || len(events) == 0 || !strings.HasPrefix(events[0], `{"type":"RUN_STARTED"`) ||
				!strings.HasPrefix(rest, strings.Join(events, "\n")) {
				t.Errorf("log %d, %d events: after %s comes\n%s\nof\n%s", n, head, resume, strings.Join(events, "\n"),
					rest)
			}
			answered++
		}
	}
	if answered < 5 {
		t.Errorf("only %d runs waited", answered)
	}
}

// TestRefusedInputsSubmitNothing: if one part of an input is invalid, none of its answers is submitted.
func TestRefusedInputsSubmitNothing(t *testing.T) {
	refused := 0
	for n, log := range logs(t) {
		for head := 1; head < len(log); head++ {
			before := shownOf(log[:head], string(log[0].Session))
			if len(before) == 0 || !strings.Contains(before[len(before)-1], `"outcome":{"type":"interrupt"`) ||
				len(shownOf(log[:head-1], string(log[0].Session))) == len(before) ||
				strings.Contains(strings.Join(before, ""), "paint") {
				continue // it does not wait, already waited before this event, or a client's tool call is open, too
			}
			resume := answersAll(t, before[len(before)-1])
			bodies := []string{`"messages":[{"id":"m","role":"user","content":" \u0000"}],"resume":` + resume,
				`"messages":[{"id":"m","role":"user","content":"Hello?"}],"tools":[{"name":""}],"resume":` + resume}
			if strings.Contains(resume, `[["this"]]`) {
				bodies = append(bodies, `"messages":[],"resume":`+strings.Replace(resume, `[["this"]]`, `[]`, 1))
			}
			for _, body := range bodies {
				d := &dialecttest.LogDoor{Log: log, Happened: head}
				status, _, events, _ := request(d, "POST", "/api/agui/scout", input(log, body))
				if status != http.StatusBadRequest || len(d.Commands) > 0 {
					t.Errorf("log %d, %d events: %s is answered %d %q, %+v", n, head, body, status, events, d.Commands)
				}
				refused++
			}
		}
	}
	if refused < 10 {
		t.Errorf("only %d inputs were refused", refused)
	}
}

func closesCard(e parley.Event) bool {
	_, ok := dialect.Closes(e)
	return ok
}

func explains(e parley.Event) bool {
	_, ok := dialect.Explains(e)
	return ok
}

// answersAll returns a resume that answers all interrupts of a RUN_FINISHED.
func answersAll(t *testing.T, finished string) string {
	var f struct {
		Outcome struct {
			Interrupts []struct {
				ID, Reason string
				Metadata   struct{ Questions []any }
			}
		}
	}
	if err := json.Unmarshal([]byte(finished), &f); err != nil {
		t.Fatal(err)
	}
	var list []any
	for _, i := range f.Outcome.Interrupts {
		payload := map[string]any{reasonApproval: map[string]any{"approved": true},
			reasonQuestion: map[string]any{"answers": [][]string{{"this"}}},
			reasonUnknown:  map[string]any{"resolution": "mark_done"}}[i.Reason]
		list = append(list, map[string]any{"interruptId": i.ID, "status": "resolved", "payload": payload})
	}
	return string(dialect.Encode(list))
}

func TestSlowBodies(t *testing.T) {
	log := logs(t)[0]
	dialecttest.Bodies(t, func() map[string]http.HandlerFunc {
		return handler(&dialecttest.LogDoor{Log: log}).Routes()
	}, dialecttest.Body{Path: "/api/agui/scout", Nobody: "X-Nobody: x",
		JSON: input(log, `"messages":[{"id":"m","role":"user","content":"Hello?"}]`)})
}
