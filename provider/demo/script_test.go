package demo

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley"
	"parley/port"
)

func TestAnswers(t *testing.T) {
	filler := "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore magna aliqua lorem ipsum"
	for _, c := range []struct {
		inputs   []string
		tools    []parley.ToolSpec
		text     string   // the whole text
		has      []string // or parts of the text
		thinking string
		call     string
		stop     parley.Stop
	}{
		{inputs: []string{"hello"}, has: []string{"demo model", "real model", "/tour", "`help`"}},
		{inputs: []string{"  HEY there!"}, has: []string{"demo model"}},
		{inputs: []string{"Good morning."}, has: []string{"demo model"}},
		{inputs: nil, has: []string{"demo model"}},
		{inputs: []string{"Help"}, has: []string{"demo model", "`/tour`", "`count to 100`", "`write X to FILE`",
			"`what did I say`", "`fail`", "`lorem 50`"}},
		{inputs: []string{"What can you do?"}, has: []string{"`think about X`"}},

		{inputs: []string{"count to 5"}, text: "1 2 3 4 5"},
		{inputs: []string{"Please count slowly to 3."}, text: "1 2 3"},
		{inputs: []string{"count to 1"}, text: "1"},
		{inputs: []string{"count to 0"}, text: "I count to anything from 1 to 10000."},
		{inputs: []string{"count to 10001"}, text: "I count to anything from 1 to 10000."},
		{inputs: []string{"count to 99999999999999999999"}, text: "I count to anything from 1 to 10000."},
		{inputs: []string{"lorem 21"}, text: filler},
		{inputs: []string{"lorem 0"}, text: "I write anything from 1 to 10000 words."},

		{inputs: []string{"think about the sea."}, has: []string{"I thought about the sea, as"},
			thinking: "about the sea"},
		{inputs: []string{"say  Ünïcode \n\t and all. "}, text: " Ünïcode \n\t and all. "},
		{inputs: []string{"REPEAT \xff\xfe 🎉"}, text: "\xff\xfe 🎉"},
		{inputs: []string{"say count to 5"}, text: "count to 5"},

		{inputs: []string{"list files"}, tools: allTools, text: "I look at the files of the workspace.",
			call: `list_files {}`},
		{inputs: []string{"read a/b.txt."}, tools: allTools, text: "I read a/b.txt.",
			call: `read_file {"path":"a/b.txt"}`},
		{inputs: []string{"write to be or not to be to play.txt"}, tools: allTools, text: "I write that to play.txt.",
			call: `write_file {"content":"to be or not to be","path":"play.txt"}`},
		{inputs: []string{"run ls -la | wc -l"}, tools: allTools, text: "I run that.",
			call: `shell {"command":["bash","-lc","ls -la | wc -l"]}`},
		{inputs: []string{"ask me"}, tools: allTools, text: "Then here is a question.",
			call: `ask_user {"questions":[{"question":"Tea or coffee?","header":"Drink","options":[{"label":"Tea"},{"label":"Coffee"}],"multi_select":false}]}`},
		{inputs: []string{"list files"}, text: "For that I would call `list_files`, but this agent does not offer " +
			"it to me."},

		{inputs: []string{"remember that my cat is called Mia."}, has: []string{"Noted: my cat is called Mia. "}},
		{inputs: []string{"what did I say?"}, text: "This is the first thing you say in this session."},
		{inputs: []string{"remember that\nit rains", "count to 3", "What do you remember"},
			text: "In this session you said:\n\n1. remember that it rains\n2. count to 3"},

		{inputs: []string{"hello", "why is the sky blue?"}, has: []string{"You said: “why is the sky blue?”", "demo",
			"`help`"}},
		{inputs: []string{"write a letter to my mother please"}, tools: allTools, has: []string{"You said"}},
		{inputs: []string{strings.Repeat("x", 1000)}, has: []string{"You said: “" + strings.Repeat("x", 200) + "…”"}},
	} {
		t.Run(strings.Join(c.inputs, "/"), func(t *testing.T) {
			h := listen(t, New(Pace(0)), say(c.tools, c.inputs...))
			if h.err != nil {
				t.Fatal(h.err)
			}
			if c.text != "" && h.text != c.text {
				t.Errorf("said %q, want %q", h.text, c.text)
			}
			for _, part := range c.has {
				if !strings.Contains(h.text, part) {
					t.Errorf("said %q, without %q", h.text, part)
				}
			}
			if (c.thinking == "") != (h.thinking == "") || !strings.Contains(h.thinking, c.thinking) {
				t.Errorf("thought %q, want %q in it", h.thinking, c.thinking)
			}
			wantStop := parley.StopEnd
			var got string
			for _, call := range h.calls {
				got = call.Name + " " + call.Arguments
				wantStop = parley.StopTools
			}
			if got != c.call || len(h.calls) > 1 {
				t.Errorf("called %+v, want %s", h.calls, c.call)
			}
			if h.done.Stop != wantStop {
				t.Errorf("stopped with %s, want %s", h.done.Stop, wantStop)
			}
		})
	}
}

func TestHelpKeepsItsPromises(t *testing.T) {
	for _, a := range acts {
		input := strings.NewReplacer("X", "tea", "FILE", "f.txt").Replace(a.say)
		if !a.when.MatchString(input) {
			t.Errorf("help offers %q, which its act does not match", a.say)
		}
	}
}

func TestResultsAreUsed(t *testing.T) {
	for _, c := range []struct{ input, result, want string }{
		{"list files", "a.txt\nb/", "The workspace holds:\n\na.txt\nb/"},
		{"read a.txt", "some words", "a.txt says:\n\nsome words"},
		{"run ls", "exit code 0\na.txt", "It ran:\n\nexit code 0\na.txt"},
		{"write hi to a.txt", "Wrote 2 bytes.", "It is written. The tool says: Wrote 2 bytes."},
		{"write hi to a.txt", "A person did not allow this: not now",
			"That came to nothing. I was told: A person did not allow this: not now"},
		{"read a.txt", "Failed: there is no a.txt", "That came to nothing. I was told: Failed: there is no a.txt"},
		{"ask me", `{"answers":[["Tea"]]}`, "Your answer: Tea. An excellent choice, as every choice would have been."},
		{"ask me", "Nobody answered: the question expired.", "That came to nothing. I was told: Nobody answered: the " +
			"question expired."},
	} {
		req := say(allTools, c.input)
		first := listen(t, New(Pace(0)), req)
		second := listen(t, New(Pace(0)), goOn(req, first, c.result))
		if second.text != c.want || len(second.calls) != 0 || second.done.Stop != parley.StopEnd {
			t.Errorf("%s: after %q said %q, want %q", c.input, c.result, second.text, c.want)
		}
	}
}

func TestCallsAreNumberedThroughTheSession(t *testing.T) {
	req := say(allTools, "list files")
	first := listen(t, New(Pace(0)), req)
	req = goOn(req, first, "a.txt")
	req.Messages = append(req.Messages, parley.Message{Role: parley.RoleUser, Text: "read a.txt"})
	second := listen(t, New(Pace(0)), req)
	if first.calls[0].Provider != "demo-1" || second.calls[0].Provider != "demo-2" {
		t.Errorf("calls are %q and %q", first.calls[0].Provider, second.calls[0].Provider)
	}
}

var tourResults = map[string]string{
	"list_files": "a.txt\nb/",
	"write_file": "A person did not allow this.",
	"ask_user":   `{"answers":[["Clear"]]}`,
}

func TestTourShowsWhatIsOffered(t *testing.T) {
	for _, c := range []struct{ offered, want []string }{
		{[]string{"list_files", "read_file", "write_file", "ask_user"},
			[]string{"list_files", "write_file", "ask_user"}},
		{[]string{"ask_user", "list_files"}, []string{"list_files", "ask_user"}},
		{nil, nil},
	} {
		req := say(nil, "/tour")
		for _, name := range c.offered {
			req.Tools = append(req.Tools, parley.ToolSpec{Name: name})
		}
		var called, said []string
		for {
			h := listen(t, New(Pace(0)), req)
			said = append(said, h.text)
			if (h.thinking != "") != (len(said) == 1) {
				t.Errorf("turn %d thought %q", len(said), h.thinking)
			}
			if len(h.calls) == 0 {
				break
			}
			if !json.Valid([]byte(h.calls[0].Arguments)) {
				t.Errorf("arguments are not JSON: %s", h.calls[0].Arguments)
			}
			called = append(called, h.calls[0].Name)
			req = goOn(req, h, tourResults[h.calls[0].Name])
		}
		if diff := cmp.Diff(c.want, called); diff != "" {
			t.Errorf("offered %v: %s", c.offered, diff)
		}
		all := strings.Join(said, "\n")
		for _, part := range []string{"demo model", "cancel in the middle", "restart the server", "second client"} {
			if !strings.Contains(all, part) {
				t.Errorf("the tour does not speak of %q", part)
			}
		}
		for tool, reaction := range map[string]string{"list_files": "a.txt\nb/", "write_file": "It was not done",
			"ask_user": "You answered: Clear."} {
			if strings.Contains(all, reaction) != slices.Contains(c.want, tool) {
				t.Errorf("offered %v: %q is wrongly said or missing", c.offered, reaction)
			}
		}
	}
}

func TestFailures(t *testing.T) {
	at := listen(t, New(Pace(0)), say(nil, "fail"))
	mid := listen(t, New(Pace(0)), say(nil, "Fail midway"))
	for _, h := range []turn{at, mid} {
		if parley.CodeOf(h.err) != parley.CodeModel || !strings.Contains(parley.MessageOf(h.err),
			"as it was asked to") {
			t.Errorf("failed with %v", h.err)
		}
	}
	if at.text != "" || mid.text == "" {
		t.Errorf("before failing: %q and %q", at.text, mid.text)
	}
}

// turns returns a request for every kind of turn.
func turns(t testing.TB) map[string]port.ModelRequest {
	all := map[string]port.ModelRequest{
		"nothing": say(nil), "other": say(nil, "wörds of no meaning"),
		"recall": say(nil, "one", "two", "what did I say"),
		"midway": say(nil, "fail midway"), "slow": say(nil, "count slowly to 12"), "help": say(nil, "help"),
		"runes": say(nil, "say ünï 🎉🎉 日本語のテキスト"),
	}
	for _, a := range acts {
		input := strings.NewReplacer("X", "tea", "FILE", "f.txt").Replace(a.say)
		for i, tools := range [][]parley.ToolSpec{nil, allTools} {
			req := say(tools, input)
			for n := 0; ; n++ {
				all[fmt.Sprintf("%s tools=%d turn=%d", input, i, n)] = req
				h := listen(t, New(Pace(0)), req)
				if len(h.calls) == 0 {
					break
				}
				req = goOn(req, h, tourResults[h.calls[0].Name])
			}
		}
	}
	return all
}

func TestSameMessagesSameWords(t *testing.T) {
	for name, req := range turns(t) {
		a, b := listen(t, New(Pace(0)), req), listen(t, New(Pace(0)), req)
		if diff := cmp.Diff(a.pieces, b.pieces); diff != "" || a.thinking != b.thinking ||
			!cmp.Equal(a.calls, b.calls) || !cmp.Equal(a.done, b.done) {
			t.Errorf("%s: two plays differ: %s", name, diff)
		}
	}
}

// cutAt returns a session after turns that were interrupted at these offsets.
func cutAt(req port.ModelRequest, whole string, offsets ...int) port.ModelRequest {
	req.Messages = slices.Clone(req.Messages)
	from := 0
	for _, to := range offsets {
		req.Messages = append(req.Messages, parley.Message{Role: parley.RoleAssistant, Text: whole[from:to],
			Incomplete: true})
		from = to
	}
	return req
}

func checkContinued(t *testing.T, name string, req port.ModelRequest, whole turn, offsets ...int) {
	t.Helper()
	rest := listen(t, New(Pace(0)), cutAt(req, whole.text, offsets...))
	prefix := whole.text[:offsets[len(offsets)-1]]
	if prefix+rest.text != whole.text {
		t.Fatalf("%s: cut at %v, went on with %q", name, offsets, rest.text)
	}
	if rest.thinking != "" {
		t.Fatalf("%s: cut at %v, thought again", name, offsets)
	}
	if !cmp.Equal(rest.calls, whole.calls) || parley.CodeOf(rest.err) != parley.CodeOf(whole.err) {
		t.Fatalf("%s: cut at %v, ended with %v, %v", name, offsets, rest.calls, rest.err)
	}
}

func TestACutAnswerGoesOnExactlyThere(t *testing.T) {
	for name, req := range turns(t) {
		whole := listen(t, New(Pace(0)), req)
		for at := range len(whole.text) + 1 {
			checkContinued(t, name, req, whole, at)
		}
	}
}

func TestACutAnswerMayBeCutAgain(t *testing.T) {
	all := turns(t)
	names := slices.Sorted(maps.Keys(all))
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(names).Draw(rt, "turn")
		whole := listen(t, New(Pace(0)), all[name])
		offsets := rapid.SliceOfN(rapid.IntRange(0, len(whole.text)), 2, 4).Draw(rt, "cuts")
		slices.Sort(offsets)
		checkContinued(t, name, all[name], whole, offsets...)
	})
}

func TestAnotherScriptIsPlayedWhole(t *testing.T) {
	for _, said := range []string{"1 2 4", "1 2 3 4 5 6"} {
		req := say(nil, "count to 5")
		req.Messages = append(req.Messages, parley.Message{Role: parley.RoleAssistant, Text: said, Incomplete: true})
		if h := listen(t, New(Pace(0)), req); h.text != "1 2 3 4 5" {
			t.Errorf("after %q said %q", said, h.text)
		}
	}
}

func TestAnOldCutIsNotContinued(t *testing.T) {
	req := cutAt(say(nil, "count to 100"), "1 2 3", 5)
	req.Messages = append(req.Messages, parley.Message{Role: parley.RoleUser, Text: "count to 4"})
	if h := listen(t, New(Pace(0)), req); h.text != "1 2 3 4" {
		t.Errorf("said %q", h.text)
	}
}

func TestPiecesAreSmallAndWhole(t *testing.T) {
	h := listen(t, New(Pace(0)), say(nil, "say one two  incomprehensibilities 日本語のテキストです end"))
	want := []string{"one ", "two  ", "incompre", "hensibil", "ities ", "日本語のテキスト", "です ", "end"}
	if diff := cmp.Diff(want, h.pieces); diff != "" {
		t.Error(diff)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		var joined strings.Builder
		for p := range split(s) {
			if p == "" || utf8.RuneCountInString(p) > longestPiece || utf8.ValidString(s) && !utf8.ValidString(p) {
				t.Fatalf("piece %q", p)
			}
			joined.WriteString(p)
		}
		if joined.String() != s {
			t.Fatalf("pieces join to %q", joined.String())
		}
	})
}

// TestExplanations checks that a call is explained by its tool, even if its
// arguments contain other text.
func TestExplanations(t *testing.T) {
	const instructions = "You explain a tool call to the person who has to approve it."
	for message, want := range map[string]string{
		"Tool: write_file\nArguments: {\"path\":\"a.txt\",\"content\":\"four\"}\n\nThe person is shown:\nx": "It would write 4 bytes to a.txt in the workspace.",
		"Tool: write_file\nArguments: {\"path\":\n\nThe person is shown:\nx":                                "It would call `write_file` with {\"path\":.",
		"Tool: shell\nArguments: {\"command\":[\"say\",\"hello\"]}\n\nThe person is shown:\nsay hello":      "It would call `shell` with {\"command\":[\"say\",\"hello\"]}.",
		"": "It would call `` with .",
	} {
		h := listen(t, New(Pace(0)), port.ModelRequest{Instructions: instructions,
			Messages: []parley.Message{{Role: parley.RoleUser, Text: message}}})
		if h.err != nil || !strings.HasPrefix(h.text, want+" ") || !strings.Contains(h.text, "demo model") ||
			len(h.calls) != 0 {
			t.Errorf("%q is explained as %q", message, h.text)
		}
	}
}

func TestGrading(t *testing.T) {
	message := func(criterion, answer string) string {
		return "<criterion m>\n" + criterion + "\n</criterion m>\n<message m>\nhello\n</message m>\n<answer m>\n" +
			answer +
			"\n</answer m>\n"
	}
	for _, c := range []struct{ criterion, answer, want string }{
		{`It says "hello" and "bye".`, "hello and bye", "VERDICT: PASS"},
		{`It says "hello" and "bye".`, "hello", "VERDICT: FAIL"},
		{"It is polite.", "hello", "VERDICT: PASS"},
	} {
		s := scriptFor(port.ModelRequest{Instructions: "You judge the answer of an assistant. …",
			Messages: []parley.Message{{Role: parley.RoleUser, Text: message(c.criterion, c.answer)}}})
		if said, ok := s.steps[0].(text); !ok || !strings.HasSuffix(string(said), "\n"+c.want) {
			t.Errorf("%s of %q: %v", c.criterion, c.answer, s.steps)
		}
	}
}
