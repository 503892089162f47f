package providertest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley"
	"parley/port"
)

// A Provider describes the provider under test.
type Provider struct {
	// New returns a model for the server at a URL. silence is the longest silence of the server.
	New      func(url string, silence time.Duration) Model
	Model    string
	Variable string // the variable that its errors about keys name
	// Signs is set if thinking comes with a memo.
	Signs bool
	// Pages is a text that occurs in a request with the pages of a PDF document; empty: the provider sends the
	// document's text instead.
	Pages string
}

// A Model is a port.Model that must be closed after use.
type Model interface {
	port.Model
	List(context.Context) ([]string, error)
	Close()
}

// patient is a silence that no test reaches, impatient one that a test does reach.
const (
	patient   = 20 * time.Second
	impatient = 300 * time.Millisecond
)

// Answer is a complete answer of a model.
type Answer struct {
	Text, Thinking string
	Pieces         int // number of text chunks
	Calls          []parley.MessageCall
	Done           *port.ModelDone
	Err            error
}

// Ask calls a model and reads the complete answer.
func Ask(ctx context.Context, m port.Model, req port.ModelRequest) (a Answer) {
	for said, err := range m.Stream(ctx, req) {
		switch {
		case err != nil:
			a.Err = err
		case said.Text != "":
			a.Text += said.Text
			a.Pieces++
		case said.Call != nil:
			a.Calls = append(a.Calls, *said.Call)
		case said.Done != nil:
			a.Done = said.Done
		}
		a.Thinking += said.Thinking
	}
	return a
}

// User returns a conversation of one message.
func User(text string) []parley.Message {
	return []parley.Message{{Role: parley.RoleUser, Text: text}}
}

var tools = []parley.ToolSpec{
	{Name: "read_file", Description: "reads",
		Parameters: `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`},
	{Name: "list_files", Description: "lists",
		Parameters: `{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer"}}}`},
}

// Run checks the rules for all providers.
func Run(t *testing.T, p Provider) {
	mock := Start(t)
	model := p.New(mock.URL, patient)
	t.Cleanup(model.Close)
	ask := func(t *testing.T, req port.ModelRequest) Answer {
		t.Helper()
		req.Model = p.Model
		return Ask(t.Context(), model, req)
	}
	said := func(t *testing.T, text string) Answer {
		t.Helper()
		a := ask(t, port.ModelRequest{Instructions: "Be brief.", Messages: User(text)})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		return a
	}

	t.Run("text comes in pieces", func(t *testing.T) {
		a := said(t, "say hello")
		if a.Text != "Hello there, this is a whole answer." || a.Pieces < 3 || a.Done.Stop != parley.StopEnd {
			t.Errorf("%+v", a)
		}
		if u := a.Done.Usage; u.Input != 12 || u.Output != 5 {
			t.Errorf("usage %+v", u)
		}
		if !strings.Contains(mock.Last().Body, "Be brief.") {
			t.Errorf("the instructions are not in %s", mock.Last().Body)
		}
	})
	t.Run("an answer is as long as allowed", func(t *testing.T) {
		a := ask(t, port.ModelRequest{Messages: User("say hello"), MaxTokens: 1234})
		if a.Err != nil || !strings.Contains(mock.Last().Body, "1234") {
			t.Errorf("%v: %s", a.Err, mock.Last().Body)
		}
		if said(t, "say hello"); strings.Contains(mock.Last().Body, "1234") {
			t.Errorf("%s", mock.Last().Body)
		}
	})
	t.Run("thinking is apart from text", func(t *testing.T) {
		a := said(t, "think first")
		if a.Thinking != "Two and two make four." || a.Text != "Four." {
			t.Errorf("%+v", a)
		}
		if p.Signs && a.Done.Memo == nil {
			t.Error("there is nothing to remember of it")
		}
	})
	t.Run("calls side by side", func(t *testing.T) { callsSideBySide(t, p, mock, ask) })
	t.Run("images are seen", func(t *testing.T) {
		image := parley.Image{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\nnot really")}
		a := ask(t,
			port.ModelRequest{
				Messages: []parley.Message{{Role: parley.RoleUser, Text: "look at this",
					Images: []parley.Image{image}}}})
		if a.Text != "A picture." {
			t.Fatalf("%+v", a)
		}
		if sent := mock.Last().Body; !strings.Contains(sent, "iVBORw0KGgpub3QgcmVhbGx5") ||
			!strings.Contains(sent, "image/png") {
			t.Errorf("no image in %s", sent)
		}
	})
	t.Run("documents are read", func(t *testing.T) {
		document := parley.Image{Type: parley.TypePDF, Data: []byte("%PDF-1.4 not really"), Name: "a.pdf", Pages: 3,
			Text: "[page 1]\nThe words."}
		for _, pages := range []int{3, 1000} { // 1000: more than any vendor reads
			document.Pages = pages
			if a := ask(t, port.ModelRequest{Messages: []parley.Message{{Role: parley.RoleUser, Text: "look at this",
				Images: []parley.Image{document}}}}); a.Text != "A picture." {
				t.Fatalf("%+v", a)
			}
			sent, data := mock.Last().Body, base64.StdEncoding.EncodeToString(document.Data)
			if whole := p.Pages != "" && pages == 3; strings.Contains(sent, data) != whole ||
				strings.Contains(sent, "The words.") == whole || whole && !strings.Contains(sent, p.Pages) {
				t.Errorf("%d pages, in %s", pages, sent)
			}
		}
	})
	t.Run("an answer that runs into a limit", func(t *testing.T) {
		if a := said(t, "too much"); a.Done.Stop != parley.StopLength {
			t.Errorf("%+v", a.Done)
		}
	})
	t.Run("errors", func(t *testing.T) { errorsAreClear(t, p, mock, ask) })
	t.Run("a cut in the middle", func(t *testing.T) {
		a := ask(t, port.ModelRequest{Messages: User("stop in the middle")})
		if a.Done != nil || parley.CodeOf(a.Err) != parley.CodeUnavailable {
			t.Errorf("%+v", a)
		}
		if whole := "This is the beginning of something that will never end."; a.Text == "" ||
			!strings.HasPrefix(whole, a.Text) {
			t.Errorf("before that %q was heard", a.Text)
		}
	})
	t.Run("silence", func(t *testing.T) { silenceEnds(t, p, mock) })
	t.Run("who leaves hangs up", func(t *testing.T) { leavingHangsUp(t, p) })
	t.Run("a server that is not there", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		gone := p.New("http://"+l.Addr().String(), patient)
		defer gone.Close()
		if a := Ask(t.Context(), gone, port.ModelRequest{Model: p.Model, Messages: User("say hello")}); parley.CodeOf(
			a.Err) != parley.CodeUnavailable || !strings.Contains(a.Err.Error(), "cannot be reached") {
			t.Errorf("%v", a.Err)
		}
	})
	t.Run("redirects are not followed", func(t *testing.T) { redirects(t, p) })
}

func callsSideBySide(t *testing.T, p Provider, mock *Mock, ask func(*testing.T, port.ModelRequest) Answer) {
	a := ask(t, port.ModelRequest{Messages: User("use tools"), Tools: tools})
	if a.Err != nil || a.Text != "Looking." || a.Done.Stop != parley.StopTools || len(a.Calls) != 2 {
		t.Fatalf("%+v", a)
	}
	for i, want := range []struct{ name, args string }{{"read_file", `{"path":"a.txt"}`},
		{"list_files", `{"path":".","depth":2}`}} {
		var got, wanted any
		_ = json.Unmarshal([]byte(want.args), &wanted) // want.args is valid JSON
		if err := json.Unmarshal([]byte(a.Calls[i].Arguments), &got); err != nil || a.Calls[i].Name != want.name ||
			cmp.Diff(wanted, got) != "" {
			t.Errorf("call %d is %+v, %v", i, a.Calls[i], err)
		}
	}
	if a.Calls[0].Provider == a.Calls[1].Provider && a.Calls[0].Provider != "" {
		t.Errorf("both calls are named %s", a.Calls[0].Provider)
	}
	a.Calls[0].ID, a.Calls[1].ID = 7, 9
	again := ask(t, port.ModelRequest{Tools: tools, Messages: append(User("use tools"),
		parley.Message{Role: parley.RoleAssistant, Text: a.Text, Thinking: a.Thinking, Calls: a.Calls,
			Memo: a.Done.Memo},
		parley.Message{Role: parley.RoleTool, Call: 7, Text: "the words of a.txt"},
		parley.Message{Role: parley.RoleTool, Call: 9, Text: "a.txt b.txt"})})
	if again.Err != nil || again.Text != "Both were read." || again.Done.Stop != parley.StopEnd {
		t.Fatalf("%+v", again)
	}
	sent := mock.Last().Body
	for _, want := range []string{"the words of a.txt", "a.txt b.txt", "read_file", "list_files", "Looking."} {
		if !strings.Contains(sent, want) {
			t.Errorf("the server was not told %q: %s", want, sent)
		}
	}
}

func errorsAreClear(t *testing.T, p Provider, mock *Mock, ask func(*testing.T, port.ModelRequest) Answer) {
	for _, c := range []struct {
		ask   string
		code  parley.Code
		words string
		after time.Duration
	}{
		{"be busy", parley.CodeOverloaded, "busy", time.Second},
		{"wait long", parley.CodeOverloaded, "busy", 3 * time.Second},
		{"break down", parley.CodeUnavailable, "trouble", 0},
		{"talk nonsense", parley.CodeUnavailable, "", 0},
		{"hang up", parley.CodeUnavailable, "", 0},
		{"wrong key", parley.CodeModel, p.Variable, 0},
		{"no such model", parley.CodeModel, p.Model, 0},
		{"too long", parley.CodeContext, "too long", 0},
		{"nonsense request", parley.CodeModel, "Unsupported parameter", 0},
	} {
		t.Run(c.ask, func(t *testing.T) {
			before := len(mock.Asked())
			a := ask(t, port.ModelRequest{Messages: User(c.ask)})
			e, ok := errors.AsType[*parley.Error](a.Err)
			if !ok || e.Code != c.code || !strings.Contains(e.Message, c.words) || e.RetryAfter != c.after ||
				a.Text != "" || a.Done != nil {
				t.Errorf("%+v, %#v", a, a.Err)
			}
			if strings.Contains(fmt.Sprintf("%v %+v", a.Err, a.Err), Key) {
				t.Errorf("the key is in %v", a.Err)
			}
			if n := len(mock.Asked()) - before; n != 1 {
				t.Errorf("it was asked %d times: who retries is not the provider", n)
			}
		})
	}
}

// silenceEnds covers a server that does not answer, and one that stops in the middle of an answer.
func silenceEnds(t *testing.T, p Provider, mock *Mock) {
	model := p.New(mock.URL, impatient)
	defer model.Close()
	for _, text := range []string{"say nothing", "fall silent"} {
		a := Ask(t.Context(), model, port.ModelRequest{Model: p.Model, Messages: User(text)})
		if parley.CodeOf(a.Err) != parley.CodeUnavailable || !strings.Contains(a.Err.Error(), "said nothing for") ||
			a.Done != nil {
			t.Errorf("%s: %+v", text, a)
		}
	}
}

// leavingHangsUp checks that the upstream call ends if its caller cancels or stops reading.
func leavingHangsUp(t *testing.T, p Provider) {
	began, gone := make(chan struct{}, 2), make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices a closed connection only after this
		began <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	}))
	defer server.Close()
	model := p.New(server.URL, patient)
	defer model.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	a := Ask(ctx, model, port.ModelRequest{Model: p.Model, Messages: User("say hello")})
	if !errors.Is(a.Err, context.Canceled) {
		t.Errorf("%v", a.Err)
	}
	select {
	case <-gone:
	case <-time.After(patient):
		t.Error("the upstream call goes on")
	}
}

// redirects checks that a redirect is not followed: it would send the key to another server.
func redirects(t *testing.T, p Provider) {
	thief := httptest.NewServer(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("asked for %s with %v", r.URL,
				r.Header)
		}))
	defer thief.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	model := p.New(server.URL, patient)
	defer model.Close()
	if a := Ask(t.Context(), model, port.ModelRequest{Model: p.Model, Messages: User("say hello")}); a.Err == nil ||
		!strings.Contains(a.Err.Error(), "base URL") {
		t.Errorf("%+v", a)
	}
}
