package eventbus

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ann = port.Principal{ID: "ann", Tenant: "acme"}

func TestTranscripts(t *testing.T) {
	dialecttest.Run(t, dialecttest.Dialect[View]{
		Name:    "eventbus",
		Project: Project,
		// The agent that delegated to a sub-agent is in another log.
		Views: map[string]View{"": {root: "/p", parent: parent{agent: "coder"}}},
		// Earlier events are read but not shown.
		// TestResumingAnywhereGetsTheSameMessages tests other starts.
		Starts:  func([]parley.Event) []int { return []int{0} },
		Ignored: Ignored,
		Decode: func(message []byte) dialecttest.Decoded {
			body, err := dialect.ParseObject(message)
			if err != nil {
				return dialecttest.Decoded{Refusal: err.Error()}
			}
			do, name, err := decodeChat(body)
			if err != nil {
				return dialecttest.Decoded{Refusal: parley.MessageOf(err)}
			}
			id := dialecttest.Session
			if name != "" {
				ids, _ := sessionsOf(ann, name)
				id = ids[0]
			}
			return dialecttest.Decoded{Command: parley.Command{Session: id, Do: do}}
		},
	})
}

// TestEveryRowOfTheDocumentIsShown: every row of the document's kind/phase table is in some transcript, and so is every
// field of its first table.
func TestEveryRowOfTheDocumentIsShown(t *testing.T) {
	document := dialecttest.Document(t, "004")
	shown := map[string]bool{}
	for _, log := range dialecttest.Logs(t) {
		v := NewView("/p")
		for _, e := range log {
			var frames []dialect.Frame
			v, frames = Project(v, e)
			for _, f := range frames {
				m := f.Body.(message)
				shown[m.Kind+"/"+m.Phase] = true
				if s, ok := m.Data.(activity); ok {
					shown["status "+s.Status] = true
				}
			}
		}
	}
	// Resync is not in logs: it is sent when a client connects.
	shown["run/resync"] = true
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| `(\\w+)` \\| ([^|]+) \\|")
	rows := row.FindAllStringSubmatch(document, -1)
	if len(rows) != 17 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, r := range rows {
		for phase := range strings.SplitSeq(strings.TrimSpace(r[3]), "/") {
			if phase = strings.Trim(phase, "`"); phase == "—" {
				phase = ""
			}
			if !shown[r[2]+"/"+phase] {
				t.Errorf("%s: no transcript shows %s/%s", r[1], r[2], phase)
			}
		}
	}
	if !shown["status idle_prompt_triggered"] {
		t.Error("no transcript shows an idle prompt")
	}
	for _, status := range []string{modelLoading, isThinking, callingTool, working, idle} {
		if !shown["status "+status] || !strings.Contains(document, "`"+status+"`") {
			t.Errorf("status %s is not shown, or not of the document", status)
		}
	}
}

// TestEveryRouteOfTheDocumentIsServed: all routes of the document are served,
// except the server's own. The message has the document's fields in the same
// order.
func TestEveryRouteOfTheDocumentIsServed(t *testing.T) {
	document := dialecttest.Document(t, "004")
	later := map[string]string{"GET /api/health": "the server's own"}
	served := (&Handler{}).Routes()
	routes := 0
	for _, line := range regexp.MustCompile("(?m)^- `([A-Z/]+) (/api/[a-z/-]+)").FindAllStringSubmatch(document, -1) {
		for method := range strings.SplitSeq(line[1], "/") {
			routes++
			route := method + " " + line[2]
			_, ok := served[route]
			if reason, left := later[route]; ok == left {
				t.Errorf("%s: served is %v, and left out %q", route, ok, reason)
			}
		}
	}
	if routes != 17 {
		t.Errorf("the document has %d routes", routes)
	}

	_, fields, _ := strings.Cut(document, "interface UiSseMessage {")
	fields, _, _ = strings.Cut(fields, "}")
	empty := ""
	wire := string(dialect.Encode(message{"i", 1, 1, 2, "k", "p", &empty, "a", "s", "", "r", map[string]int{}}))
	at, keys := 0, regexp.MustCompile(`(?m)^\s*(\w+)\??:`).FindAllStringSubmatch(fields, -1)
	for _, key := range keys {
		i := strings.Index(wire, `"`+key[1]+`":`)
		if i < at {
			t.Errorf("%s is not where the document has it in %s", key[1], wire)
		}
		at = i
	}
	if len(keys) != 11 {
		t.Errorf("the document's message has %d fields", len(keys))
	}
}

// TestTheWireIsTheDocuments: messages have the keys of UiSseMessage in its
// order, and are like the frames of the original server in the reference.
func TestTheWireIsTheDocuments(t *testing.T) {
	empty := ""
	full := dialect.Encode(message{"i", 1, 1, 2, "k", "p", &empty, "a", "s", "", "r", map[string]int{}})
	if want := `{"id":"i","seq":1,"rev":1,"ts_ms":2,"kind":"k","phase":"p","text":"","agent_id":"a","session_id":"s","project_root":"r","data":{}}`; string(full) != want {
		t.Errorf("%s", full)
	}
	bare := dialect.Encode(message{ID: "i", Kind: "k"})
	if want := `{"id":"i","seq":0,"rev":0,"ts_ms":0,"kind":"k"}`; string(bare) != want {
		t.Errorf("%s", bare)
	}
	for _, c := range []struct {
		data any
		keys string
	}{
		{said{}, "from to role"},
		{queue{}, "items"},
		{queued{}, "id agent_id session_id preview timestamp"},
		{activity{}, "status detail lifecycle parent_id"},
		{contextUsage{}, "agent_id stage message_count char_count estimated_tokens token_limit actual_prompt_tokens " +
			"actual_completion_tokens compressed summary_count"},
		{changeReport{}, "run files truncated_count"},
		{fileChange{}, "path summary diff"},
		{modelFallback{}, "preferred actual reason preferred_model actual_model"},
		{toolProgress{}, "tool line stream"},
		{resync{}, "reason lagged_count"},
		{blockStart{Args: json.RawMessage("{}")}, "block_id block_type tool args parent_id"},
		{blockUpdate{}, "block_id status summary is_error parent_id"},
		{turnComplete{}, "duration_ms context_tokens parent_id"},
		{askUser{}, "question_id questions"},
		{question{}, "question header options multi_select"},
		{option{}, "label description preview"},
	} {
		var got map[string]json.RawMessage
		if err := json.Unmarshal(dialect.Encode(c.data), &got); err != nil {
			t.Fatal(err)
		}
		for _, key := range strings.Fields(c.keys) {
			if _, ok := got[key]; !ok {
				t.Errorf("%T has no %s", c.data, key)
			}
			delete(got, key)
		}
		if len(got) > 0 {
			t.Errorf("%T has %v besides", c.data, got)
		}
	}
}
