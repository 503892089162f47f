package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"parley"
	"parley/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-secret-0123456789"

// fetch reads a complete answer.
func fetch(t *testing.T, ctx context.Context, idle time.Duration, handler http.HandlerFunc) (read string, err error) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	c := New(Server{Vendor: "Acme", Variable: "ACME_KEY", Key: key, Idle: idle}, server.URL)
	defer c.Close()
	for _, e := range c.Stream(ctx, "m-1", func(ctx context.Context, say func(port.ModelChunk) error) error {
		answer, err := c.Post(ctx, "", nil)
		if err != nil {
			return err
		}
		defer answer.Close()
		raw, err := io.ReadAll(answer)
		read = string(raw)
		return err
	}) {
		err = e
	}
	return read, err
}

func TestRefusals(t *testing.T) {
	soon := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		status int
		header [2]string
		body   string
		code   parley.Code
		words  string
		atMost time.Duration
	}{
		{429, [2]string{"Retry-After", "2"}, `{"error":{"message":"x"}}`, parley.CodeOverloaded, "Acme is busy",
			2 * time.Second},
		{429, [2]string{"Retry-After-Ms", "250"}, `{}`, parley.CodeOverloaded, "busy", 250 * time.Millisecond},
		{429, [2]string{"Retry-After", soon}, ``, parley.CodeOverloaded, "busy", 90 * time.Second},
		{429, [2]string{"Retry-After", "1e300"}, ``, parley.CodeOverloaded, "busy", time.Hour},
		{429, [2]string{"Retry-After", "soon"}, `{"error":{"message":"Rate limit reached. Please try again in 1.5s."}}`,
			parley.CodeOverloaded, "busy", 1500 * time.Millisecond},
		{429, [2]string{}, `{"error":{"code":"insufficient_quota","message":"x"}}`, parley.CodeModel, "no credit", 0},
		{529, [2]string{}, `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, parley.CodeOverloaded,
			"busy", 0},
		{500, [2]string{}, `<html>`, parley.CodeUnavailable, "trouble", 0},
		{401, [2]string{}, `{"error":{"message":"Incorrect API key: ` + key + `"}}`, parley.CodeModel,
			"the key in ACME_KEY", 0},
		{403, [2]string{}, ``, parley.CodeModel, "the key in ACME_KEY", 0},
		{404, [2]string{}, `{"error":"model \"m-1\" not found"}`, parley.CodeModel, "no model m-1", 0},
		{400, [2]string{}, `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`,
			parley.CodeContext, "too long for m-1", 0},
		{413, [2]string{}, ``, parley.CodeContext, "too long", 0},
		{400, [2]string{}, `{"error":{"message":"bad ` + key + ` ` + strings.Repeat("long ", 100) + `"}}`,
			parley.CodeModel, "bad (key) long", 0},
		{418, [2]string{}, ``, parley.CodeModel, "status 418", 0},
		{302, [2]string{"Location", "http://127.0.0.1:1/"}, ``, parley.CodeModel, "base URL", 0},
	} {
		_, err := fetch(t, t.Context(), 0, func(w http.ResponseWriter, _ *http.Request) {
			if c.header[0] != "" {
				w.Header().Set(c.header[0], c.header[1])
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		e, ok := errors.AsType[*parley.Error](err)
		if !ok || e.Code != c.code || !strings.Contains(e.Message, c.words) || e.RetryAfter > c.atMost ||
			c.atMost > 0 && e.RetryAfter < c.atMost-2*time.Second || len(e.Message) > 400 {
			t.Errorf("%d %v %s: %#v", c.status, c.header, c.body, err)
		}
		if strings.Contains(fmt.Sprint(err), key) {
			t.Errorf("the key is in %v", err)
		}
		if v := e.Vendor; (v != nil) != (c.status >= 400) || v != nil && (v.Status != c.status ||
			strings.Contains(v.Message, key)) {
			t.Errorf("%d %s: the vendor's answer is %+v", c.status, c.body, v)
		}
	}
}

// TestVendorsAreQuoted checks that errors have the vendor's own words, without the key and parts of it.
func TestVendorsAreQuoted(t *testing.T) {
	for _, c := range []struct {
		status     int
		said, want string
	}{
		{429, "Rate limit exceeded", "Rate limit exceeded"},
		{400, "Unknown field\nin " + key, "Unknown field\nin (key)"},
		{401, "Incorrect API key provided: sk-se*******6789. Look at your keys.",
			"Incorrect API key provided: (key) Look at your keys."},
		{503, strings.Repeat("long ", 100), strings.Repeat("long ", 100)},
	} {
		raw, _ := json.Marshal(map[string]any{"error": map[string]string{"message": c.said}}) // strings can be encoded
		_, err := fetch(t, t.Context(), 0, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write(raw)
		})
		e, ok := errors.AsType[*parley.Error](err)
		want := parley.VendorError{Status: c.status, Message: c.want}
		if !ok || e.Vendor == nil || *e.Vendor != want {
			t.Errorf("%+v, want the vendor's answer %+v", e, want)
		}
	}
}

// TestCuts checks that an answer ends with an error, however the connection ends.
func TestCuts(t *testing.T) {
	flush := func(w http.ResponseWriter, text string) {
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush() // works with an httptest server
	}
	for name, c := range map[string]struct {
		idle    time.Duration
		handler http.HandlerFunc
		code    parley.Code
		words   string
	}{
		"it stops well, and too early": {0, func(w http.ResponseWriter, _ *http.Request) { flush(w, "data") },
			parley.CodeUnavailable, "in the middle"},
		"it breaks off": {0, func(w http.ResponseWriter, _ *http.Request) {
			flush(w, "data")
			panic(http.ErrAbortHandler)
		}, parley.CodeUnavailable, "was lost"},
		"it falls silent": {50 * time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
			flush(w, "data")
			<-r.Context().Done()
		}, parley.CodeUnavailable, "said nothing for 50ms"},
		"it does not even begin": {50 * time.Millisecond,
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, parley.CodeUnavailable,
			"said nothing for 50ms"},
		"it never ends": {0, func(w http.ResponseWriter, r *http.Request) {
			for line := strings.Repeat("x", 1<<20); r.Context().Err() == nil; {
				flush(w, line)
			}
		}, parley.CodeTooLarge, "did not come to an end"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // no test should reach it
			defer cancel()
			read, err := fetch(t, ctx, c.idle, c.handler)
			if parley.CodeOf(err) != c.code || !strings.Contains(parley.MessageOf(err), c.words) ||
				len(read) > maxBytes+1 {
				t.Errorf("%v, after %d bytes", err, len(read))
			}
		})
	}
}

// TestSlowIsNotSilent checks that a slow model does not time out as long as
// parts of its answer arrive. Data that only keeps the connection open does not
// count.
func TestSlowIsNotSilent(t *testing.T) {
	const pause = 100 * time.Millisecond
	slowly := func(line string) (read string, err error) {
		return fetch(t, t.Context(), 10*pause, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			for n := 0; n < 15 && r.Context().Err() == nil; n++ { // longer than the allowed silence
				_, _ = io.WriteString(w, line)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(pause) // the pause is what this test is about
			}
		})
	}
	for name, line := range map[string]string{
		"data":          "data: {\"type\":\"content\"}\n\n",
		"a piece of it": "data: {\"text\":\"" + strings.Repeat("x", 100),
	} {
		if read, err := slowly(line); strings.Count(read, line) != 15 ||
			!strings.Contains(parley.MessageOf(err), "in the middle") {
			t.Errorf("%s: %q, %v", name, read, err)
		}
	}
	for name, line := range map[string]string{
		"comments":    ": still here\n\n",
		"empty lines": "\r\n",
		"pings":       "event: ping\ndata: {\"type\": \"ping\"}\n\n",
		"empty data":  "data:\n\n",
	} {
		if read, err := slowly(line); strings.Count(read, line) == 15 ||
			!strings.Contains(parley.MessageOf(err), "said nothing for 1s") {
			t.Errorf("%s: %q, %v", name, read, err)
		}
	}
}

func TestCancelling(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	_, err := fetch(t, ctx, 0, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		close(gone)
	})
	<-gone
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestCallerStopsReading checks that the call ends if its caller stops reading, in the
// middle of an endless answer.
func TestCallerStopsReading(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer server.Close()
	c := New(Server{Vendor: "Acme"}, server.URL)
	defer c.Close()
	for s, err := range c.Stream(t.Context(), "m-1", func(ctx context.Context, say func(port.ModelChunk) error) error {
		answer, err := c.Post(ctx, "", nil)
		if err != nil {
			return err
		}
		defer answer.Close()
		piece := make([]byte, 4)
		if _, err := io.ReadFull(answer, piece); err != nil {
			return err
		}
		return say(port.ModelChunk{Text: string(piece)})
	}) {
		if err != nil || s.Text != "data" {
			t.Errorf("%+v, %v", s, err)
		}
		break
	}
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("the upstream call goes on")
	}
}

func TestPieces(t *testing.T) {
	var r Recorder
	r.Begin(Part{Kind: Thinking})
	r.Add(Thinking, "Hm, ")
	r.Add(Thinking, "ja.")
	r.Sign("s1", "")
	r.Add(Thinking, "Noch was.") // a signed part is not extended
	r.Sign("s2", "id")
	r.Add(Text, "Grüße")
	r.Begin(Part{Kind: Call})
	r.Add(Text, "!")
	m := parley.Message{Role: parley.RoleAssistant, Text: "Grüße!", Thinking: "Hm, ja.Noch was.",
		Calls: []parley.MessageCall{{ID: 1, Name: "look"}}, Memo: r.Memo("p", "m")}
	got, ok := Pieces("p", "m", m)
	want := []Piece{
		{Part: Part{Thinking, 7, "s1", ""}, Words: "Hm, ja."},
		{Part: Part{Thinking, 9, "s2", "id"}, Words: "Noch was."},
		{Part: Part{Text, 7, "", ""}, Words: "Grüße"},
		{Part: Part{Call, 0, "", ""}, Call: m.Calls[0]},
		{Part: Part{Text, 1, "", ""}, Words: "!"},
	}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("%v, %s", ok, diff)
	}
	for name, change := range map[string]func(*parley.Message){
		"provider": func(m *parley.Message) { m.Memo.Provider = "q" }, "model": func(
			m *parley.Message) {
			m.Memo.Model = "n"
		},
		"text": func(m *parley.Message) { m.Text += "!" }, "less text": func(m *parley.Message) { m.Text = "Grüße" },
		"calls": func(m *parley.Message) { m.Calls = nil }, "more calls": func(
			m *parley.Message) {
			m.Calls = append(m.Calls, m.Calls...)
		},
		"data": func(m *parley.Message) { m.Memo.Data = json.RawMessage(`[{"kind":"text","size":-1}]`) },
	} {
		changed, memo := m, *m.Memo
		changed.Memo = &memo
		change(&changed)
		if _, ok := Pieces("p", "m", changed); ok {
			t.Errorf("with another %s it still fits", name)
		}
	}
	var plain, huge Recorder
	plain.Add(Text, "x")
	huge.Begin(Part{Kind: Thinking, Sign: strings.Repeat("x", parley.MaxMemo)})
	if plain.Memo("p", "m") != nil || huge.Memo("p", "m") != nil {
		t.Error("nothing, or too much, is remembered")
	}
}

func TestTalk(t *testing.T) {
	user, said := parley.Message{Role: parley.RoleUser, Text: "hi"}, parley.Message{Role: parley.RoleAssistant,
		Text: "so", Incomplete: true}
	note := parley.Message{Role: parley.RoleUser, Text: goOn}
	call := parley.Message{Role: parley.RoleAssistant,
		Calls: []parley.MessageCall{{ID: 1, Name: "look", Arguments: ` {"at":[1]} `}}}
	result := parley.Message{Role: parley.RoleTool, Call: 1}
	for _, c := range []struct{ in, want []parley.Message }{
		{[]parley.Message{user, said}, []parley.Message{user, said, note}},
		{[]parley.Message{user, said, said}, []parley.Message{user, said, note, said, note}},
		{[]parley.Message{user, said, user}, []parley.Message{user, said, user}},
		{[]parley.Message{user, {Role: parley.RoleAssistant}, user}, []parley.Message{user, user}},
		{[]parley.Message{user, call, result}, []parley.Message{user, call, result}},
	} {
		if diff := cmp.Diff(c.want, Talk(c.in)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestTalkRepairsInvalidCalls checks that one invalid call of a model does
// not cause every later request to be refused.
func TestTalkRepairsInvalidCalls(t *testing.T) {
	for _, c := range []struct{ name, arguments, want string }{
		{"read_file", `{"path":"a","path":"b"}`, `read_file {"path":"a","path":"b"}`},
		{"multi_tool_use.parallel", `{"a":1}`, `multi_tool_use_parallel {"a":1}`},
		{"", "", "unknown {}"},
		{"rm -rf é", `["a"]`, "rm_-rf__ {}"},
		{strings.Repeat("n", 65), `{"path":`, strings.Repeat("n", 64) + " {}"},
		{"a", `null`, "a {}"},
		{"a", `{}{}`, "a {}"},
	} {
		in := []parley.Message{
			{Role: parley.RoleAssistant, Calls: []parley.MessageCall{{ID: 1, Name: c.name, Arguments: c.arguments}}},
			{Role: parley.RoleTool, Call: 1}}
		got := Talk(in)[0].Calls[0]
		if got.Name+" "+got.Arguments != c.want {
			t.Errorf("%q %s: %q %s", c.name, c.arguments, got.Name, got.Arguments)
		}
		if in[0].Calls[0].Name != c.name {
			t.Errorf("%q was changed in place", c.name)
		}
	}
}

func TestCallNames(t *testing.T) {
	calls := []parley.MessageCall{{ID: 1, Provider: "toolu_1"}, {ID: 2}, {ID: 3, Provider: "not:for/all"},
		{ID: 4, Provider: strings.Repeat("x", 65)}, {ID: 5, Provider: "toolu_1"}}
	got := CallNames([]parley.Message{{Calls: calls[:2]}, {Calls: calls[2:]}})
	want := map[parley.CallID]string{1: "toolu_1", 2: "call_2", 3: "call_3", 4: "call_4", 5: "call_5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
