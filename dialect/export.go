package dialect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"regexp"
	"strings"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"parley"
	"parley/port"
)

// An Export is a conversation as a document for people: the messages, the tool calls with their results, people's
// decisions and the changed files. It leaves out thinking and bookkeeping, which the log has. Call Read with the events
// of the session in order.
type Export struct {
	title  string
	id     parley.SessionID
	opened time.Time
	parts  []exportPart
	size   int // bytes of the parts
	agent  string
	tools  map[parley.CallID]string
}

// exportPart is a part of the document. Each part is rendered separately, so no markup in one part can affect the next.
type exportPart struct {
	speaker string // empty: a note of the server
	text    string // Markdown
	images  []parley.Image
	own     bool // the server wrote the Markdown; other text is only in code blocks
}

const (
	maxExport  = 16 << 20 // bytes
	maxResults = 4 << 10  // bytes of a call's result
)

// Read adds an event to the document. It fails if the document becomes too large.
func (x *Export) Read(e parley.Event) error {
	switch b := e.Body.(type) {
	case parley.SessionOpened:
		x.id, x.opened, x.title, x.agent = e.Session, e.At, b.Title, b.Agent
	case parley.SessionRenamed:
		x.title = b.Title
	case parley.SessionForked:
		x.forked(b)
	case parley.InputReceived:
		if b.Synthetic {
			x.note("A follow-up was due.")
		} else {
			x.add(exportPart{speaker: "You", text: b.Content, images: b.Images})
		}
	case parley.InputWithdrawn:
		x.note("A message was withdrawn.")
	case parley.RunStarted:
		x.agent = b.Agent.Name
	case parley.OutputFinished:
		if b.Kind == parley.Text {
			x.says(x.agent, b.Text)
		}
	case parley.RunFinished:
		if b.Outcome != parley.Completed {
			x.note(fmt.Sprintf("The run ended: %s. %s", b.Outcome, b.Message))
		}
	case parley.FilesChanged:
		for _, f := range b.Files {
			x.shows(fmt.Sprintf("%s: %s\n\n%s", f.Summary, codeSpan(f.Path), fenced("diff", f.Diff)))
		}
	case parley.ChangesUndone:
		x.note(b.Summary())
	default:
		x.call(e)
	}
	if x.size > maxExport {
		return parley.Errorf(parley.CodeTooLarge, "The conversation is longer than %d MiB. Export it as JSON lines.",
			maxExport>>20)
	}
	return nil
}

var decisions = map[parley.Decision]string{parley.AllowOnce: "Allowed once", parley.AllowAlways: "Always allowed",
	parley.Deny: "Denied", parley.DenyAndStop: "Denied, and the run stopped,"}

func (x *Export) call(e parley.Event) {
	switch b := e.Body.(type) {
	case parley.ToolCallRequested:
		x.called(parley.CallID(e.Seq), b.Name, b.Arguments)
	case parley.ToolCallBlocked:
		x.note("Blocked: " + b.Reason)
	case parley.ToolCallFinished:
		x.result(b.Call, Result(b))
	case parley.ApprovalDecided:
		x.note(fmt.Sprintf("%s by %s. %s", decisions[b.Decision], e.By, b.Note))
	case parley.QuestionAnswered:
		var answers []string
		for _, each := range b.Answers {
			answers = append(answers, strings.Join(each, ", "))
		}
		x.says("You", strings.Join(answers, "\n\n"))
	}
}

func (x *Export) forked(b parley.SessionForked) {
	for _, m := range b.Messages {
		switch {
		case m.Call != 0:
			x.result(m.Call, m.Text)
		case m.Role == parley.RoleUser:
			x.add(exportPart{speaker: "You", text: m.Text, images: m.Images})
		default:
			x.says(x.agent, m.Text)
		}
		for _, c := range m.Calls {
			x.called(c.ID, c.Name, c.Arguments)
		}
	}
	x.note("Forked from the conversation " + string(b.Source))
}

func (x *Export) says(speaker, text string) {
	x.add(exportPart{speaker: cmp.Or(speaker, "Agent"), text: text})
}

// shows adds an action of the agent, in the server's words.
func (x *Export) shows(text string) {
	x.add(exportPart{speaker: cmp.Or(x.agent, "Agent"), text: text, own: true})
}

func (x *Export) note(text string) {
	text = strings.Join(strings.Fields(text), " ")
	x.add(exportPart{text: "> " + noMarkup.Replace(text), own: true})
}

var noMarkup = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", `\<`, "[", `\[`, "&", `\&`)

func (x *Export) add(p exportPart) {
	p.text, p.images = withoutDocuments(p.text, p.images)
	if p.text == "" && len(p.images) == 0 {
		return
	}
	x.size += len(p.text)
	for _, i := range p.images {
		x.size += len(i.Data)
	}
	x.parts = append(x.parts, p)
}

// withoutDocuments replaces PDF documents by their names in the text: an export shows images only.
func withoutDocuments(text string, given []parley.Image) (_ string, images []parley.Image) {
	for _, i := range given {
		if i.Type != parley.TypePDF {
			images = append(images, i)
			continue
		}
		text += fmt.Sprintf("\n\n%s (PDF, %d pages)", codeSpan(i.Name), i.Pages)
	}
	return strings.TrimSpace(text), images
}

func (x *Export) called(id parley.CallID, name, arguments string) {
	if x.tools == nil {
		x.tools = map[parley.CallID]string{}
	}
	x.tools[id] = name
	x.shows(codeSpan(name) + "\n\n" + fenced("json", arguments))
}

func (x *Export) result(id parley.CallID, text string) {
	more := ""
	if len(text) > maxResults {
		more = fmt.Sprintf("\n… (%d bytes more)", len(text)-maxResults)
		text = strings.ToValidUTF8(text[:maxResults], "")
	}
	if name := x.tools[id]; !parley.IsBlank(text) {
		x.shows("Result of " + codeSpan(name) + ":\n\n" + fenced("text", text+more))
	}
}

// fenced returns text as a code block whose fence does not occur in the text.
func fenced(language, text string) string {
	if parley.IsBlank(text) {
		return ""
	}
	fence := ticksAround(text, 3)
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

func codeSpan(text string) string {
	if parley.IsBlank(text) {
		return ""
	}
	fence := ticksAround(text, 1)
	return fence + strings.Join(strings.Fields(text), " ") + fence
}

var ticks = regexp.MustCompile("`+")

// ticksAround returns a run of backticks that is longer than any run in text.
func ticksAround(text string, least int) string {
	for _, row := range ticks.FindAllString(text, -1) {
		least = max(least, len(row)+1)
	}
	return strings.Repeat("`", least)
}

// Title returns the title of the document.
func (x *Export) Title() string {
	if parley.IsBlank(x.title) {
		return "Conversation"
	}
	return strings.Join(strings.Fields(x.title), " ")
}

func (x *Export) origin() string {
	return fmt.Sprintf("%s · session %s", x.opened.UTC().Format("2 January 2006, 15:04 UTC"), x.id)
}

// Document returns the document in a format: "markdown" or "html".
func (x *Export) Document(ctx context.Context, format string) ([]byte, error) {
	if format == "html" {
		return x.html(ctx)
	}
	return x.markdown(), nil
}

const exportPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

// ExportPolicy is the content security policy of the page: browsers load and run nothing in it.
const ExportPolicy = exportPolicy + "; sandbox"

const exportHead = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="` + exportPolicy + `">
<meta name="viewport" content="width=device-width">
<meta name="referrer" content="no-referrer">
<title>%[1]s</title>
<style>
:root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }
header h1 { margin: 0; font-size: 1.5rem; line-height: 1.3 }
header p, .speaker { color: light-dark(#666, #aaa); font-size: .875rem; margin: .25rem 0 }
section { border-top: 1px solid #8884; margin-top: 1.5rem; padding-top: 1rem; contain: content; unicode-bidi: isolate }
.speaker { font-weight: 600 }
.you { border-left: 3px solid #8888; padding-left: 1rem }
section :is(h1, h2, h3, h4, h5, h6) { font-size: 1.05rem; margin: 1rem 0 .25rem }
pre { overflow: auto; max-height: 30rem; background: #8881; border-radius: .5rem; padding: .75rem 1rem }
pre { font-size: .85em }
code { font-family: ui-monospace, monospace; overflow-wrap: normal }
blockquote { margin: 0; padding-left: 1rem; border-left: 3px solid #8884; color: light-dark(#666, #aaa) }
table { border-collapse: collapse } td, th { border: 1px solid #8884; padding: .25rem .5rem }
img { max-width: 100%% }
</style>
<header><h1>%[1]s</h1><p>%[2]s</p></header>
`

// html writes the document as a self-contained page. HTML tags of people and models are shown as text, and linked
// images as links.
func (x *Export) html(ctx context.Context) ([]byte, error) {
	md := goldmark.New(goldmark.WithExtensions(extension.GFM),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(tagsAsText{}, 1))))
	var out bytes.Buffer
	fmt.Fprintf(&out, exportHead, html.EscapeString(x.Title()), html.EscapeString(x.origin()))
	speaker, marked := "", 0
	for n, p := range x.parts {
		if n == 0 || p.speaker != "" && p.speaker != speaker {
			if n > 0 {
				out.WriteString("</section>\n")
			}
			class := ""
			if speaker = p.speaker; speaker == "You" {
				class = ` class="you"`
			}
			fmt.Fprintf(&out, "<section%s>\n", class)
			if speaker != "" {
				fmt.Fprintf(&out, "<h2 class=\"speaker\">%s</h2>\n", html.EscapeString(speaker))
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if marked += len(p.text); len(p.text) > maxMarked || marked > maxAllMarked ||
			port.HasHugeTable(p.text) {
			fmt.Fprintf(&out, "<pre>%s</pre>\n", html.EscapeString(p.text))
		} else if err := md.Convert([]byte(p.text), &out); err != nil {
			return nil, err
		}
		for _, i := range p.images {
			fmt.Fprintf(&out, "<p><img alt=\"Attached image\" src=\"data:%s;base64,%s\"></p>\n",
				html.EscapeString(i.Type), base64.StdEncoding.EncodeToString(i.Data))
		}
	}
	if len(x.parts) > 0 {
		out.WriteString("</section>\n")
	}
	out.WriteString("</html>\n")
	return out.Bytes(), nil
}

const (
	// maxMarked is the longest text that is rendered as Markdown: the time for hostile text grows with the square of
	// its length.
	maxMarked = 16 << 10
	// maxAllMarked is the limit for all these texts of one page together.
	maxAllMarked = 1 << 20
)

type tagsAsText struct{}

func (tagsAsText) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, enter bool) (ast.WalkStatus, error) {
		if enter {
			_, _ = w.WriteString(html.EscapeString(string(n.(*ast.RawHTML).Segments.Value(source))))
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, enter bool) (ast.WalkStatus,
		error) {
		block := n.(*ast.HTMLBlock)
		text := string(block.Lines().Value(source))
		if block.HasClosure() {
			text += string(block.ClosureLine.Value(source))
		}
		if enter {
			_, _ = w.WriteString("<p>" + html.EscapeString(text) + "</p>\n")
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindImage, func(w util.BufWriter, _ []byte, n ast.Node, enter bool) (ast.WalkStatus, error) {
		address := string(n.(*ast.Image).Destination)
		switch {
		case !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://"):
		case enter:
			_, _ = w.WriteString(`<a href="` + html.EscapeString(address) + `">`)
		default:
			_, _ = w.WriteString("</a>")
		}
		return ast.WalkContinue, nil
	})
}
