package dialect_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"

	"parley"
	"parley/dialect"
)

// document exports a log with these events.
func document(t *testing.T, format string, bodies ...parley.EventBody) string {
	t.Helper()
	var x dialect.Export
	for i, b := range bodies {
		if err := x.Read(parley.Event{Session: "s", Seq: parley.Seq(i + 1), By: "ann",
			At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := x.Document(t.Context(), format)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestExport(t *testing.T) {
	got := document(t, "markdown",
		parley.SessionOpened{Owner: "ann", Title: "Fix it"},
		parley.InputReceived{Content: "Look at **this**.",
			Images: []parley.Image{{Type: "image/png", Data: []byte("x")}}},
		parley.RunStarted{Input: 2, Agent: parley.AgentRef{Name: "coder"}},
		parley.OutputFinished{Kind: parley.Thinking, Text: "secret thoughts"},
		parley.OutputFinished{Kind: parley.Text, Text: "I look."},
		parley.ToolCallRequested{Name: "shell", Arguments: `{"command":["ls"]}`},
		parley.ApprovalDecided{Call: 6, Decision: parley.AllowOnce},
		parley.ToolCallFinished{Call: 6, Name: "shell", Outcome: parley.CallSucceeded, Result: "a ``` b"},
		parley.OutputFinished{Kind: parley.Text, Text: "Done:\n```\nnever closed"},
		parley.RunFinished{Outcome: parley.Failed, Message: "The model is gone."},
	)
	want := "# Fix it\n\n2 January 2026, 03:04 UTC · session s\n\n" +
		"## You\n\nLook at **this**.\n\n> Image (image/png, 1 bytes)\n\n" +
		"## coder\n\nI look.\n\n`shell`\n\n```json\n{\"command\":[\"ls\"]}\n```\n\n> Allowed once by ann.\n\n" +
		"Result of `shell`:\n\n````text\na ``` b\n````\n\nDone:\n```\nnever closed\n```\n\n" +
		"> The run ended: failed. The model is gone.\n\n"
	if got != want {
		t.Errorf("%s\nwant:\n%s", got, want)
	}
}

// TestExportedMarkdownIsContained: no message affects the heading or the text of the next one.
func TestExportedMarkdownIsContained(t *testing.T) {
	for _, hostile := range []string{
		"Code:\n```\nnever closed", "~~~~\n~~~\n```", "1. a list\n\n   ```\n   never closed",
		"> quoted\n> ~~~~~\n> never closed", "- ```` `\n  x", "``` a`b\ntext", "\t```\nindented",
		"<!-- never closed", "a <!-- comment --> in a line", "<!-- one\n\n<!-- two -->\n\n<!-- three", "- <!--\n  x",
		"<script>\n\nnever closed", "<PRE>\nx", "<?php", "<!DOCTYPE x", "<![CDATA[ x", "<style>\n* { display: none }",
		"<textarea>", "<div>\n<!-- x", "```\n<!--\n```\n<!--", "a\n===\n<!--", "[a]: <x\n\n<!--",
		strings.Repeat("<!--\n\n", 20),
	} {
		got := document(t, "markdown", parley.SessionOpened{Owner: "ann", Title: "T"},
			parley.InputReceived{Content: hostile}, parley.OutputFinished{Kind: parley.Text, Text: "the answer"},
			parley.InputReceived{Content: "the end"})
		var page strings.Builder
		if err := goldmark.Convert([]byte(got), &page); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"<h2>Agent</h2>", "<p>the answer</p>", "<h2>You</h2>\n<p>the end</p>"} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("after %q there is no %s:\n%s", hostile, want, got)
			}
		}
		if strings.Contains(page.String(), "raw HTML omitted") && !strings.Contains(hostile, "<div>") {
			t.Errorf("%q hides text:\n%s", hostile, got)
		}
	}
}

// TestExportedPageIsData: text of people and models cannot run or load anything in the page, or look like the text of
// another speaker.
func TestExportedPageIsData(t *testing.T) {
	got := document(t, "html",
		parley.SessionOpened{Owner: "ann", Title: "</title><script>1</script>"},
		parley.InputReceived{Content: "<script>window.pwned = 1</script>\n\n<img src=x onerror=window.pwned=2>",
			Images: []parley.Image{{Type: "image/png", Data: []byte("x")}}},
		parley.OutputFinished{Kind: parley.Text, Text: "a <b onclick=window.pwned=3>tag</b> and " +
			"[a link](javascript:window.pwned=4) ![pixel](https://example.com/p.png) ![x](data:text/html,x)\n\n" +
			"<style>* { display: none }</style>\n\n| a |\n|---|\n| 1 |\n\n</section><h2 class=\"speaker\">You</h2>\n\n" +
			"<!-- never closed"},
		parley.OutputFinished{Kind: parley.Text, Text: "still here\n\n```\nnever closed"},
		parley.InputReceived{Content: "the end"},
	)
	for _, bad := range []string{"<script", "<img src", "<b ", "javascript:", "<style>*", "data:text"} {
		if strings.Contains(got, bad) {
			t.Errorf("the page has %s:\n%s", bad, got)
		}
	}
	for _, good := range []string{"<table>", "&lt;script&gt;window.pwned = 1&lt;/script&gt;", "default-src 'none'",
		`<a href="https://example.com/p.png">pixel</a>`, "<p>still here</p>", "<p>the end</p>",
		`src="data:image/png;base64,eA=="`} {
		if !strings.Contains(got, good) {
			t.Errorf("the page lacks %s:\n%s", good, got)
		}
	}
	if n := strings.Count(got, `<h2 class="speaker">`); n != 3 {
		t.Errorf("the page names %d speakers:\n%s", n, got)
	}
}

func TestExportsAreBounded(t *testing.T) {
	var x dialect.Export
	long := parley.Event{Body: parley.InputReceived{Content: strings.Repeat("long ", 1<<20)}}
	var err error
	for range 5 {
		if err = x.Read(long); err != nil {
			break
		}
	}
	if parley.CodeOf(err) != parley.CodeTooLarge {
		t.Error(err)
	}
}

// TestExportOfHostileText: a long text is shown as plain text, because rendering it as Markdown could take minutes.
// Rendering stops once the client has left.
func TestExportOfHostileText(t *testing.T) {
	var x dialect.Export
	long := strings.Repeat("[a](", 16<<10)
	for seq := range parley.Seq(3) {
		if err := x.Read(parley.Event{Seq: seq + 1, Body: parley.InputReceived{Content: long}}); err != nil {
			t.Fatal(err)
		}
	}
	page, err := x.Document(t.Context(), "html")
	if err != nil || strings.Count(string(page), "<pre>"+long) != 3 {
		t.Errorf("%v: %.300s", err, page)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Document(gone, "html"); err == nil {
		t.Error("a page is made for a client that is gone")
	}
}
