package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/client"
)

// tinyModel is a model server like OpenAI's with the model tiny, which always answers "from tiny".
func tinyModel(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"tiny","object":"model"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		const head = `data: {"id":"x","object":"chat.completion.chunk","model":"tiny","choices":[{"index":0,`
		fmt.Fprintf(w, head+`"delta":{"role":"assistant","content":"from tiny"}}]}`+"\n\n")
		fmt.Fprintf(w, head+`"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s
}

// TestScreenCommands checks on a real server that /model, /export, /compact, /fork, /project, the editor and a pasted
// image have their effects.
func TestScreenCommands(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("another process does the work")
	}
	project, garden, folder := screenProject(t), t.TempDir(), t.TempDir()
	editor := filepath.Join(folder, "editor")
	put(t, editor, "#!/bin/sh\nprintf ' and edited' >>\"$1\"\n")
	put(t, filepath.Join(garden, "agents", "gardener.md"), "---\nname: gardener\nmodel: demo\n---\nGrow.\n")
	put(t, filepath.Join(folder, "my shot.gif"), "GIF89a01")
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", project, "--project", garden,
		"--openai-base-url", tinyModel(t).URL+"/v1", "--model", "demo")
	defer stop()
	c, err := client.New(addr, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	u := newScreen(t, 100, 40, []string{"VISUAL=sh " + editor}, "--server", addr)
	u.see("✓ ready")

	u.keys("-l", "say written")
	u.see("› say written")
	u.keys("C-g")
	u.see("› say written and edited")
	u.keys("Enter")
	u.see("› say written and edited written and edited", "✓ ready")

	u.enter("/model tiny")
	u.see("The next messages are answered by tiny.")
	u.enter("who are you?")
	u.see("› who are you? from tiny", "✓ ready", "coder · tiny")
	u.enter("/model demo")
	u.see("answered by demo.")

	exported := filepath.Join(folder, "talk.md")
	u.enter("/export " + exported)
	u.see("The conversation is in " + exported)
	u.enter("/export " + exported)
	u.see("file exists")
	if text, err := os.ReadFile(exported); err != nil ||
		!strings.Contains(string(text), "## local\n\nwho are you?\n\nfrom tiny\n") {
		t.Errorf("%v; the file has\n%s", err, text)
	}

	first := onlySession(t, c, project)
	long := &conversation{t, addr, string(first)} // a short conversation cannot be compacted
	long.say(strings.Repeat("much ", 400))
	long.until("RunFinished", 3)
	u.see("You said:", "✓ ready")
	u.enter("/compact")
	u.see("Earlier messages were replaced by a summary")
	if len(eventsOf[parley.ContextCompacted](t, c, first)) != 1 {
		t.Error("the log has no compaction")
	}

	u.enter("/fork")
	u.see("This is a copy of the session.", "goes on from a copy")
	u.enter("say in the copy")
	u.see("› say in the copy in the copy", "✓ ready")
	if said := eventsOf[parley.InputReceived](t, c, first); len(said) != 3 {
		t.Errorf("the session itself has the messages %v", said)
	}

	u.enter("/project " + filepath.Base(garden))
	u.see("A new session in " + garden)
	u.keys("-l", "@gar")
	u.keys("Tab")
	u.see("› @gardener")
	u.tmux("set-buffer", "'"+filepath.Join(folder, "my shot.gif")+"'")
	u.tmux("paste-buffer", "-p")
	name := "@" + strings.ReplaceAll(filepath.Join(folder, "my shot.gif"), " ", `\ `)
	u.see(`my\ shot.gif`)
	u.keys("Enter")
	u.see("(1 image)", "✓ ready", "gardener · demo")
	said := eventsOf[parley.InputReceived](t, c, onlySession(t, c, garden))
	if in := said[0]; in.Content != name || len(in.Images) != 1 || in.Images[0].Type != "image/gif" ||
		string(in.Images[0].Data) != "GIF89a01" {
		t.Errorf("the message is %q with the images %+v", in.Content, in.Images)
	}
}

// eventsOf returns the events of a type in the log of a session.
func eventsOf[B parley.EventBody](t *testing.T, c *client.Client, id parley.SessionID) (found []B) {
	t.Helper()
	for u, err := range c.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := u.Event.Body.(B); ok {
			found = append(found, b)
		}
	}
	return found
}

// onlySession returns the session of a project that has exactly one.
func onlySession(t *testing.T, c *client.Client, project string) parley.SessionID {
	t.Helper()
	list, err := c.Sessions(t.Context(), client.SessionQuery{Project: project})
	if err != nil || len(list) != 1 {
		t.Fatalf("the sessions of %s: %v, %v", project, list, err)
	}
	return list[0].ID
}
