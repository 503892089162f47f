package openai

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var told = dialect.Notices{Console: "https://parley.example.com"}

var views = map[string]View{
	"":     {Shape: Responses, Notices: told},
	"chat": {Shape: Chat, Notices: told, Usage: true},
}

var transcripts = dialecttest.Dialect[View]{
	Name:    "openai",
	Project: Project,
	Views:   views,
	Starts:  dialecttest.FromRuns,
	Ignored: Ignored,
	Decode: func(message []byte) dialecttest.Decoded {
		do, shape, err := decodeNew(message)
		if err != nil {
			return dialecttest.Decoded{Refusal: parley.MessageOf(err), Request: paramOf(err)}
		}
		return dialecttest.Decoded{Command: parley.Command{Session: dialecttest.Session, Do: do}, Shape: string(shape)}
	},
}

// decodeNew decodes a request of either API that opens a session.
func decodeNew(message []byte) (do parley.SubmitInput, shape Shape, err error) {
	o, err := dialect.ParseObject(message)
	if err != nil {
		return do, "", parley.Errorf(parley.CodeInvalid, "%s", err)
	}
	decode, shape := decodeResponse, Responses
	if o.Has("messages") {
		decode, shape = decodeChat, Chat
	}
	a, err := decode(o, "")
	if err == nil {
		do, err = a.input(a.entries)
	}
	return do, shape, err
}

func paramOf(err error) string {
	if p, ok := errors.AsType[*paramError](err); ok {
		return p.param
	}
	return ""
}

func TestTranscripts(t *testing.T) { dialecttest.Run(t, transcripts) }

// TestEveryResponseIsWhole: in any tree of sessions, every response has a beginning and an end, and its event numbers
// increase.
func TestEveryResponseIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := dialecttest.AnyTree(t)
		v := View{Shape: Responses}
		open, number := "", int64(0)
		seen := map[string]bool{}
		for _, e := range log {
			var frames []dialect.Frame
			v, frames = Project(v, e)
			if _, ok := e.Body.(parley.InputWithdrawn); ok && e.Session == dialecttest.Session {
				frames = nil // a separate response, which may come while another is shown
			}
			for _, f := range frames {
				head := f.Body.(event).about()
				if head.Type == "response.created" {
					id := f.Body.(lifecycle).Response.ID
					if seen[id] || open != "" {
						t.Fatalf("%s begins, and began or another has not ended, in\n%s", id, dialecttest.Lines(log))
					}
					seen[id], open, number = true, id, -1
				}
				if open == "" {
					t.Fatalf("%s comes outside a response in\n%s", head.Type, dialecttest.Lines(log))
				}
				if head.Number <= number {
					t.Fatalf("%s has the number %d after %d in\n%s", head.Type, head.Number, number,
						dialecttest.Lines(log))
				}
				number = head.Number
				if l, ok := f.Body.(lifecycle); ok && l.Response.Usage != nil {
					open = ""
				}
			}
		}
	})
}

// TestEventNumbersDoNotDependOnChunks: a client may leave after any event and resume when the chunks were deleted. It
// then gets the rest: no character is lost or doubled, and all other events have the same numbers as before.
func TestEventNumbersDoNotDependOnChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := dialecttest.AnyLog(t)
		live, later := eventsOf(log), eventsOf(dialecttest.Trimmed(log))
		for id, events := range live {
			whole, seen := textOf(events), ""
			for _, e := range events {
				seen += textOf([]event{e})
				rest := ""
				for _, o := range later[id] {
					if o, ok := cut(o, e.about().Number+1); ok {
						rest += textOf([]event{o})
					}
				}
				if seen+rest != whole {
					t.Fatalf("%s was left after %d with %q, and goes on with %q, in\n%s", id, e.about().Number, seen,
						rest,
						dialecttest.Lines(log))
				}
			}
		}
	})
}

// eventsOf returns the events of each response.
func eventsOf(log []parley.Event) map[string][]event {
	all, id := map[string][]event{}, ""
	v := View{Shape: Responses}
	for _, e := range log {
		var frames []dialect.Frame
		v, frames = Project(v, e)
		before := id
		for _, f := range frames {
			if l, ok := f.Body.(lifecycle); ok {
				id = l.Response.ID
			}
			all[id] = append(all[id], f.Body.(event))
		}
		if _, ok := e.Body.(parley.InputWithdrawn); ok {
			id = before
		}
	}
	return all
}

// textOf returns the text of events, with the types and numbers of events other than deltas.
func textOf(events []event) string {
	var b strings.Builder
	for _, e := range events {
		switch e := e.(type) {
		case textDelta:
			b.WriteString(e.Delta)
		case summaryDelta:
			b.WriteString(e.Delta)
		case argumentsDelta:
			b.WriteString(e.Delta)
		default:
			fmt.Fprintf(&b, "[%s %d]", e.about().Type, e.about().Number)
		}
	}
	return b.String()
}
