package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// An a2aEvent is an event from a stream of npm @a2a-js/sdk, or a task, with the fields that tests check. States are
// numbers there.
type a2aEvent struct {
	Kind, ID, TaskID, ContextID string
	Status                      struct {
		State   int
		Message struct {
			Parts []struct {
				Content struct {
					Case  string `json:"$case"`
					Value json.RawMessage
				}
			}
		}
	}
	Artifact  a2aArtifact
	Artifacts []a2aArtifact
	Append    bool
	Metadata  struct {
		Usage struct{ Input, Output int }
	}
}

type a2aArtifact struct {
	Parts []struct{ Content struct{ Value string } }
}

const (
	a2aWorking       = 2
	a2aCompleted     = 3
	a2aFailed        = 4
	a2aCanceled      = 5
	a2aInputRequired = 6
)

func (a a2aArtifact) text() (text string) {
	for _, p := range a.Parts {
		text += p.Content.Value
	}
	return text
}

// card returns the id of the card that the task waits for.
func (e a2aEvent) card() string {
	for _, p := range e.Status.Message.Parts {
		var card struct{ ID string }
		if p.Content.Case == "data" && json.Unmarshal(p.Content.Value, &card) == nil {
			return card.ID
		}
	}
	return ""
}

// An a2aTask adds up the events of a task, as a client does.
type a2aTask struct {
	id, context, text string
	state             int
	tokens            int
	events            []a2aEvent
}

func (k *a2aTask) add(e a2aEvent) {
	k.events = append(k.events, e)
	switch e.Kind {
	case "task", "":
		k.id, k.context, k.state, k.text = e.ID, e.ContextID, e.Status.State, ""
		for _, a := range e.Artifacts {
			k.text += a.text()
		}
	case "statusUpdate":
		k.state = e.Status.State
	case "artifactUpdate":
		if !e.Append {
			k.text = ""
		}
		k.text += e.Artifact.text()
	}
	k.tokens += e.Metadata.Usage.Output
}

// An a2aClient is npm @a2a-js/sdk for the agent of a server.
type a2aClient struct {
	n       *node
	s       *server
	version string
	headers map[string]string
}

// in returns the same client for a subtest.
func (c a2aClient) in(t *testing.T) a2aClient {
	c.n = c.n.in(t)
	return c
}

func (c a2aClient) begin(act string, more map[string]any) *socket {
	c.n.t.Helper()
	command := map[string]any{"do": "use", "module": "a2a", "act": act, "version": c.version, "headers": c.headers,
		"base": "http://" + c.s.address + "/a2a/helpful-assistant/"}
	for key, value := range more {
		command[key] = value
	}
	return c.n.begin(command)
}

// stream reads a stream to its end and adds up its events.
func (c a2aClient) stream(act string, more map[string]any) (k a2aTask) {
	c.n.t.Helper()
	for socket := c.begin(act, more); ; {
		h := socket.next()
		if h.Event == "close" {
			return k
		}
		k.add(parseA2A(c.n.t, h))
	}
}

func parseA2A(t *testing.T, h happened) (e a2aEvent) {
	t.Helper()
	if h.Event != "event" && h.Event != "answer" {
		t.Fatalf("A2A: %+v", h)
	}
	if err := json.Unmarshal([]byte(h.Data), &e); err != nil {
		t.Fatalf("%v in %s", err, h.Data)
	}
	return e
}

// ask performs an act and returns the task of its answer.
func (c a2aClient) ask(act string, more map[string]any) (k a2aTask) {
	c.n.t.Helper()
	k.add(parseA2A(c.n.t, c.begin(act, more).next()))
	return k
}

// refused performs an act for which the client raises one of its own errors.
func (c a2aClient) refused(act string, more map[string]any) string {
	c.n.t.Helper()
	h := c.begin(act, more).next()
	if h.Event != "refused" {
		c.n.t.Fatalf("%s %v: %+v", act, more, h)
	}
	name, _, _ := strings.Cut(h.Data, ":")
	return fmt.Sprint(name, " ", h.Code)
}

// TestA2A: the official client streams a turn in both versions, goes on after a crash, resumes in mid-stream, answers
// cards, cancels, and gets usage.
func TestA2A(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.0", "0.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, options{}), startNode(t)
			c := a2aClient{n: n, s: s, version: version}
			if hello := c.stream("stream", map[string]any{"text": "say hello",
				"base": "http://" + s.address + "/"}); hello.state != a2aCompleted || hello.text != "hello" {
				t.Errorf("by the card of the server: %+v", hello)
			}
			talk := c.stream("stream", map[string]any{"text": "lorem 20", "context": "tea"})
			first := talk.events[0]
			if first.Kind != "task" || talk.context != "tea" || talk.state != a2aCompleted || talk.tokens == 0 ||
				!strings.HasPrefix(talk.text, "lorem ipsum dolor") {
				t.Errorf("%+v", talk)
			}
			if got := c.ask("get", map[string]any{"task": talk.id}); got.text != talk.text || got.state != talk.state ||
				got.tokens != talk.tokens {
				t.Errorf("the task is %+v, and was streamed as %+v", got, talk)
			}

			written := c.stream("stream", map[string]any{"text": "write it to a.txt", "context": "tea"})
			if written.state != a2aInputRequired || written.events[len(written.events)-1].card() == "" {
				t.Fatalf("%+v", written)
			}
			s.kill()
			s = s.again()
			c.s = s
			allowed := c.stream("stream", map[string]any{"text": "allow", "task": written.id})
			if allowed.state != a2aCompleted || !strings.Contains(allowed.text, "It is written.") ||
				allowed.events[0].Kind != "task" {
				t.Errorf("%+v", allowed)
			}
			wantFile(t, s, "a.txt", "it")
			denied := c.ask("send", map[string]any{"text": "write it to b.txt", "context": "tea"})
			if denied.state != a2aInputRequired {
				t.Fatalf("%+v", denied)
			}
			if denied = c.ask("send", map[string]any{"data": map[string]any{"decision": "deny", "note": "not that"},
				"task": denied.id}); denied.state != a2aCompleted {
				t.Errorf("%+v", denied)
			}
			wantNoFile(t, s, "b.txt")
			asked := c.ask("send", map[string]any{"text": "ask me", "context": "tea"})
			if answered := c.ask("send", map[string]any{"text": "Coffee", "task": asked.id}); !strings.Contains(
				answered.text,
				"Your answer: Coffee.") {
				t.Errorf("%+v", answered)
			}
			a2aResumes(t, c)
			cut := c.stream("stream", map[string]any{"text": "count slowly to 12", "context": "tea", "leave": 4})
			s.kill()
			s = s.again()
			c.s = s
			rest := c.resume(cut.id, 1000)
			if got := c.ask("get", map[string]any{"task": cut.id}); rest.text != got.text || rest.state != got.state ||
				!strings.HasPrefix(rest.text, cut.text) || rest.state != a2aCompleted ||
				strings.ReplaceAll(rest.text, "\n\n", "") != counted(12) { // the texts of two turns
				t.Errorf("%q is resumed after a crash as %+v; the task is %+v", cut.text, rest, got)
			}
			a2aCancels(t, c)
			a2aRefuses(t, c, talk.id)
		})
	}
}

// resume subscribes to a task, or gets it if it has ended meanwhile.
func (c a2aClient) resume(task string, leave int) (k a2aTask) {
	c.n.t.Helper()
	for socket := c.begin("subscribe", map[string]any{"task": task, "leave": leave}); ; {
		switch h := socket.next(); {
		case h.Event == "refused" && strings.HasPrefix(h.Data, "UnsupportedOperationError: "):
			return c.ask("get", map[string]any{"task": task})
		case h.Event == "close":
			if k.events[0].Kind != "task" {
				c.n.t.Errorf("the first event is %+v", k.events[0])
			}
			return k
		default:
			k.add(parseA2A(c.n.t, h))
		}
	}
}

// a2aResumes: a client that hangs up in mid-stream, or whose server is killed, gets the rest and no character twice.
func a2aResumes(t *testing.T, c a2aClient) {
	begun := c.stream("stream", map[string]any{"text": "count slowly to 12", "context": "counting", "leave": 4})
	if begun.text == "" || strings.Contains(begun.text, "12") {
		t.Fatalf("%+v", begun)
	}
	again := c.resume(begun.id, 3)
	if !strings.HasPrefix(again.text, begun.text) {
		t.Errorf("%q is resumed with %+v", begun.text, again.events)
	}
	rest := c.resume(begun.id, 1000)
	if rest.text != "1 2 3 4 5 6 7 8 9 10 11 12" || rest.state != a2aCompleted {
		t.Errorf("%+v", rest)
	}
	if why := c.refused("subscribe", map[string]any{"task": begun.id}); why != "UnsupportedOperationError -32004" {
		t.Errorf("subscribing to a task that has ended: %s", why)
	}
}

func a2aCancels(t *testing.T, c a2aClient) {
	begun := c.stream("stream", map[string]any{"text": "count slowly to 100", "leave": 4})
	if cancelled := c.ask("cancel", map[string]any{"task": begun.id}); cancelled.state != a2aCanceled ||
		!strings.HasPrefix(cancelled.text, begun.text) {
		t.Errorf("%+v", cancelled)
	}
	if why := c.refused("cancel", map[string]any{"task": begun.id}); why != "TaskNotCancelableError -32002" {
		t.Errorf("cancelling it again: %s", why)
	}
}

// a2aRefuses: the client raises its own error for each mistake, and nothing is appended.
func a2aRefuses(t *testing.T, c a2aClient, ended string) {
	gone := c.ask("send", map[string]any{"text": "say hi"})
	if status, body := c.n.fetch(c.s, "DELETE", "/api/v1/sessions/"+gone.context, ""); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, body)
	}
	session, _, _ := strings.Cut(ended, ".")
	before := len(c.s.events(session))
	for _, one := range []struct {
		act  string
		more map[string]any
		want string
	}{
		{"send", map[string]any{"text": " ", "context": "tea"}, "RequestMalformedError -32602"},
		{"stream", map[string]any{"text": "", "context": "tea"}, "RequestMalformedError -32602"},
		{"send", map[string]any{"data": map[string]any{"x": 1}, "context": "tea"},
			"ContentTypeNotSupportedError -32005"},
		{"send", map[string]any{"text": "hi", "context": gone.context}, "RequestMalformedError -32602"},
		{"send", map[string]any{"text": "allow", "task": ended}, "UnsupportedOperationError -32004"},
		{"stream", map[string]any{"text": "allow", "task": ended}, "UnsupportedOperationError -32004"},
		{"send", map[string]any{"text": "allow", "task": ended, "context": "coffee"}, "RequestMalformedError -32602"},
		{"send", map[string]any{"text": "allow", "task": "nonsense"}, "TaskNotFoundError -32001"},
		{"send", map[string]any{"text": "allow", "task": newThread() + ".2"}, "TaskNotFoundError -32001"},
		{"get", map[string]any{"task": gone.id}, "TaskNotFoundError -32001"},
		{"get", map[string]any{"task": session + ".1"}, "TaskNotFoundError -32001"},
		{"get", map[string]any{"task": session + ".99999"}, "TaskNotFoundError -32001"},
		{"subscribe", map[string]any{"task": gone.id}, "TaskNotFoundError -32001"},
		{"cancel", map[string]any{"task": newThread() + ".2"}, "TaskNotFoundError -32001"},
		{"send", map[string]any{"text": "hi", "base": "http://" + c.s.address + "/a2a/nobody/"}, "Error 0"}, // no agent
	} {
		if got := c.refused(one.act, one.more); got != one.want && !(c.version == "0.3" && one.want == "Error 0") {
			t.Errorf("%s %v: %s, want %s", one.act, one.more, got, one.want)
		}
	}
	if after := len(c.s.events(session)); after != before {
		t.Errorf("%d events were appended", after-before)
	}
}
