package aisdk

import (
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

func request(d port.Door, method, path, body string) dialecttest.Answer {
	return dialecttest.Ask(handler(d).Routes(), method, path, body)
}

func logs(t *testing.T) (list [][]parley.Event) {
	return slices.DeleteFunc(dialecttest.Logs(t), func(log []parley.Event) bool { return log[0].Seq != 1 })
}

// shownOf returns all chunks of a log, and whether the run waits at its end.
func shownOf(log []parley.Event) (all []string, waits bool) {
	v := View{session: log[0].Session}
	for _, e := range log {
		var frames []dialect.Frame
		v, frames = Project(v, e)
		for _, f := range frames {
			all = append(all, string(dialect.Encode(f.Body)))
		}
	}
	return all, v.waits.Waiting()
}

// TestReplays: a replay shows the run from its start up to the end of the log.
// It ends properly if the run waits, and is aborted if the server stops.
func TestReplays(t *testing.T) {
	for n, log := range logs(t) {
		for head := 1; head <= len(log); head++ {
			d := &dialecttest.LogDoor{Log: log, Happened: head}
			m, err := d.Session(t.Context(), ann, log[0].Session)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"/api/aisdk/scout/%s/stream", "/api/aisdk/chats/%s/stream"} {
				a := request(d, "GET", fmt.Sprintf(path, m.ID), "")
				if m.Run == 0 {
					if a.Status != http.StatusNoContent || a.Data != nil {
						t.Errorf("log %d, %d events: no run is open, and the answer is %+v", n, head, a)
					}
					continue
				}
				all, waits := shownOf(log[:head])
				if waits {
					all = append(all, done)
				}
				if a.Whole != waits || !strings.HasPrefix(a.Data[0], `{"type":"start"`) ||
					!slices.Equal(a.Data, all[len(all)-len(a.Data):]) {
					t.Errorf("log %d, %d events: shown is\n%s\nof\n%s", n, head, strings.Join(a.Data, "\n"),
						strings.Join(all, "\n"))
				}
			}
		}
	}
}

// body returns a request with one message.
func body(log []parley.Event, message string) string {
	return fmt.Sprintf(`{"id":%q,"messages":[%s]}`, log[0].Session, message)
}

const hello = `{"id":"u","role":"user","parts":[{"type":"text","text":"Hello?"}]}`

// TestAnswersContinueTheStream: wherever a run waits, an answer continues the stream from there, and a message is
// refused.
func TestAnswersContinueTheStream(t *testing.T) {
	answered := 0
	for n, log := range logs(t) {
		for head := 2; head < len(log); head++ {
			before, waits := shownOf(log[:head])
			all, _ := shownOf(log)
			if last, _ := shownOf(log[:head-1]); !waits || len(last) == len(before) {
				continue
			}
			d := &dialecttest.LogDoor{Log: log, Happened: head}
			if a := request(d, "POST", "/api/aisdk/scout", body(log, hello)); a.Status != http.StatusConflict ||
				len(d.Commands) > 0 {
				t.Errorf("log %d, %d events: a message is answered %+v, %+v", n, head, a, d.Commands)
			}
			cards, _ := d.Cards(t.Context(), ann, port.CardQuery{})
			if len(cards) == 0 || cards[0].Kind == parley.CardCall || cards[0].Session != log[0].Session {
				continue
			}
			id := parley.Ref(cards[0].Session, cards[0].Seq)
			answer := body(log, fmt.Sprintf(`{"id":"a","role":"assistant","parts":[
				{"type":"dynamic-tool","toolCallId":%q,"state":"output-available","output":"this"},
				{"type":"dynamic-tool","toolCallId":"x","state":"approval-responded",
					"approval":{"id":%q,"approved":true}}]}`,
				id, id))
			if a := request(d, "POST", "/api/aisdk/nobody", answer); a.Status != http.StatusNotFound ||
				len(d.Commands) > 0 {
				t.Errorf("log %d, %d events: an agent that does not exist: %+v, %+v", n, head, a, d.Commands)
			}
			a := request(d, "POST", "/api/aisdk/scout", answer)
			m, _ := d.Session(t.Context(), ann, log[0].Session)
			_, waits = shownOf(log)
			if rest := strings.Join(append(all, done), "\n"); len(d.Commands) != 1 ||
				a.Whole != (m.Run == 0 || waits) ||
				!strings.HasPrefix(a.Data[0], `{"type":"start"`) ||
				!strings.Contains(rest, strings.Join(a.Data, "\n")) {
				t.Errorf("log %d, %d events: %+v is answered\n%s\nof\n%s", n, head, d.Commands,
					strings.Join(a.Data, "\n"), rest)
			}
			answered++
		}
	}
	if answered < 5 {
		t.Errorf("only %d runs waited", answered)
	}
}

// TestAnswersOfOtherClientsAreShown: a client that answers the last card also
// sees the answers that other clients gave meanwhile.
func TestAnswersOfOtherClientsAreShown(t *testing.T) {
	log := logs(t)[0] // cards.txtar: two approvals and a question
	d := &dialecttest.LogDoor{Log: log, Happened: 20}
	a := request(d, "POST", "/api/aisdk/scout", body(log, fmt.Sprintf(`{"id":"a","role":"assistant","parts":[
		{"type":"dynamic-tool","toolCallId":"%s.13","state":"output-available","output":{"answers":[["Tea"]]}}]}`,
		log[0].Session)))
	shown := strings.Join(a.Data, "\n")
	for _, want := range []string{`.9","output":""`, `"tool-output-denied","toolCallId":"` + string(log[0].Session) +
		`.11"`,
		`.13","output":"{`, `"delta":"Done."`, done} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is missing in\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "This needs your word.") {
		t.Errorf("text comes twice:\n%s", shown)
	}
	want := parley.AnswerQuestion{Card: 14, Answers: [][]string{{"Tea"}}}
	if len(d.Commands) != 1 || fmt.Sprint(d.Commands[0].Do) != fmt.Sprint(want) {
		t.Errorf("%+v", d.Commands)
	}
}

func TestSlowBodies(t *testing.T) {
	log := logs(t)[0]
	dialecttest.Bodies(t, func() map[string]http.HandlerFunc {
		return handler(&dialecttest.LogDoor{Log: log}).Routes()
	}, dialecttest.Body{Path: "/api/aisdk/scout", Nobody: "X-Nobody: x", JSON: body(log, hello)})
}
