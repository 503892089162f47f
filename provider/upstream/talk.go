package upstream

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"parley"
)

// goOn follows an answer that was interrupted and that the model must continue.
// If a conversation ends with the model's own text, some vendors refuse it and
// others take it for finished.
const goOn = "(The answer above was cut off by a fault. Go on exactly where it ends, without repeating anything.)"

// Talk changes a conversation so that every vendor accepts it: no message of
// the model is empty, the last message is never the model's, and calls have
// valid names and arguments. Otherwise a model that once called a tool with a
// dot in its name, or with half an object, would be refused for the rest of the
// session.
func Talk(messages []parley.Message) []parley.Message {
	var talk []parley.Message
	for i, m := range messages {
		if m.Role == parley.RoleAssistant && m.Text == "" && len(m.Calls) == 0 {
			continue
		}
		m.Calls = slices.Clone(m.Calls)
		for i, c := range m.Calls {
			m.Calls[i].Name, m.Calls[i].Arguments = toolName(c.Name), object(c.Arguments)
		}
		talk = append(talk, m)
		last := i == len(messages)-1
		if m.Role == parley.RoleAssistant && len(m.Calls) == 0 && (last || messages[i+1].Role == parley.RoleAssistant) {
			talk = append(talk, parley.Message{Role: parley.RoleUser, Text: goOn})
		}
	}
	return talk
}

var (
	callName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	notNamed = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
)

// toolName changes a name so that every vendor accepts it. Names of real tools
// are valid, so it changes only names that a model has made up.
func toolName(name string) string {
	name = notNamed.ReplaceAllString(name, "_")
	return cmp.Or(name[:min(len(name), 64)], "unknown")
}

// object returns arguments unchanged if they are an object. Others were
// refused, as the call's result says.
func object(arguments string) string {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &args) != nil || args == nil {
		return "{}"
	}
	return arguments
}

// CallName returns the id of a call in requests: the id from its own provider
// if every vendor accepts it, otherwise one made from the call's id.
func CallName(c parley.MessageCall) string {
	if callName.MatchString(c.Provider) {
		return c.Provider
	}
	return fmt.Sprintf("call_%d", c.ID)
}

// CallNames returns the CallName of every call in a conversation, for the
// results. If two calls have the same name, one gets another name: otherwise
// one result would answer both.
func CallNames(messages []parley.Message) map[parley.CallID]string {
	names := map[parley.CallID]string{}
	taken := map[string]bool{}
	for _, m := range messages {
		for _, c := range m.Calls {
			name := CallName(c)
			if taken[name] {
				name = fmt.Sprintf("call_%d", c.ID)
			}
			names[c.ID], taken[name] = name, true
		}
	}
	return names
}

// Arguments returns the arguments of a call as the object that vendors require.
// A call whose arguments are not an object was refused; the call itself stays
// in the conversation.
func Arguments(c parley.MessageCall) map[string]any {
	var args map[string]any
	if json.Unmarshal([]byte(c.Arguments), &args) != nil || args == nil {
		return map[string]any{}
	}
	return args
}

// Schema returns the schema of a tool's parameters. For a tool without a schema, it allows no parameters.
func Schema(t parley.ToolSpec) map[string]any {
	var schema map[string]any
	if json.Unmarshal([]byte(t.Parameters), &schema) != nil || schema == nil {
		schema = map[string]any{"type": "object", "properties": map[string]any{}}
	}
	return schema
}

// maxPages is the maximum number of pages of a document that every vendor reads.
const maxPages = 100

// Pages reports whether a vendor that reads documents gets the pages of i instead of its text.
func Pages(i parley.Image) bool {
	return i.Type == parley.TypePDF && (i.Pages <= maxPages || i.Text == "")
}

// DataURL returns an image as a data URL.
func DataURL(i parley.Image) string {
	return "data:" + i.Type + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

// A Part is a part of a turn, in the order in which the model made it: a number
// of bytes of its text or thinking, or one of its calls, with the data that the
// vendor attached. The text itself is in the log and not stored twice.
type Part struct {
	Kind string `json:"kind"`           // text, thinking, call, or a kind of the vendor's own
	Size int    `json:"size,omitempty"` // length of a text or thinking, in bytes
	Sign string `json:"sign,omitempty"`
	Data string `json:"data,omitempty"`
}

const (
	Text     = "text"
	Thinking = "thinking"
	Call     = "call"
)

// Memo returns a memo with the parts of a turn, for the provider that made
// them. It returns nil if there is nothing to remember, or too much.
func Memo(provider, model string, parts []Part) *parley.Memo {
	if !slices.ContainsFunc(parts, func(p Part) bool { return p.Sign != "" || p.Data != "" }) {
		return nil
	}
	raw, err := json.Marshal(parts)
	if err != nil || len(raw) > parley.MaxMemo {
		return nil
	}
	return &parley.Memo{Provider: provider, Model: model, Data: raw}
}

// A Piece is a part of a turn with its text.
type Piece struct {
	Part
	Words string
	Call  parley.MessageCall
}

// Pieces splits a turn into its original parts, if the memo is from this
// provider and model and still fits. It does not fit a message that was changed
// later.
func Pieces(provider, model string, m parley.Message) (pieces []Piece, ok bool) {
	var parts []Part
	if m.Memo == nil || m.Memo.Provider != provider || m.Memo.Model != model ||
		json.Unmarshal(m.Memo.Data, &parts) != nil {
		return nil, false
	}
	text, thinking, calls := m.Text, m.Thinking, m.Calls
	cut := func(from *string, size int) (words string, ok bool) {
		if size < 0 || size > len(*from) {
			return "", false
		}
		words, *from = (*from)[:size], (*from)[size:]
		return words, true
	}
	for _, part := range parts {
		piece, fits := Piece{Part: part}, true
		switch part.Kind {
		case Text:
			piece.Words, fits = cut(&text, part.Size)
		case Thinking:
			piece.Words, fits = cut(&thinking, part.Size)
		case Call:
			if fits = len(calls) > 0; fits {
				piece.Call, calls = calls[0], calls[1:]
			}
		}
		if !fits {
			return nil, false
		}
		pieces = append(pieces, piece)
	}
	return pieces, text == "" && thinking == "" && len(calls) == 0
}

// Plain returns the pieces of a turn without a memo.
func Plain(m parley.Message) []Piece {
	pieces := []Piece{{Part: Part{Kind: Text}, Words: m.Text}}
	for _, c := range m.Calls {
		pieces = append(pieces, Piece{Part: Part{Kind: Call}, Call: c})
	}
	return pieces
}

// A Recorder records the parts of a turn while it is streamed.
type Recorder struct{ parts []Part }

// Add records text or thinking. It extends the last part if that has the same
// kind and is not signed.
func (r *Recorder) Add(kind, words string) {
	if n := len(r.parts); n > 0 && r.parts[n-1].Kind == kind && r.parts[n-1].Sign == "" {
		r.parts[n-1].Size += len(words)
		return
	}
	r.parts = append(r.parts, Part{Kind: kind, Size: len(words)})
}

// Begin begins a new part, even after one of the same kind.
func (r *Recorder) Begin(p Part) { r.parts = append(r.parts, p) }

// Sign attaches the vendor's data to the last part.
func (r *Recorder) Sign(sign, data string) {
	if n := len(r.parts); n > 0 {
		r.parts[n-1].Sign += sign
		r.parts[n-1].Data += data
	}
}

// Memo returns the memo of the recorded parts.
func (r *Recorder) Memo(provider, model string) *parley.Memo { return Memo(provider, model, r.parts) }
