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

// goOn follows an answer that was cut off and that the model is to go on with:
// a conversation that ends with the model's own words is refused by some vendors
// and taken for finished by others.
const goOn = "(The answer above was cut off by a fault. Go on exactly where it ends, without repeating anything.)"

// Talk is a conversation as every vendor takes it: no message of the model's is
// empty, the last is never its own, and what it asked for are calls that could
// be. A model that once asked for a tool with a dot in its name, or with half an
// object, would otherwise be refused for the rest of the session.
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

// toolName is a name that every vendor takes. The names of tools are such, so it
// changes only what was no tool's.
func toolName(name string) string {
	name = notNamed.ReplaceAllString(name, "_")
	return cmp.Or(name[:min(len(name), 64)], "unknown")
}

// object is arguments as they are, if they are an object. What was none was
// refused, as the result says.
func object(arguments string) string {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &args) != nil || args == nil {
		return "{}"
	}
	return arguments
}

// CallName is the name a call goes by in requests: the one its own provider gave
// it, if every vendor takes such names, else one made of its id.
func CallName(c parley.MessageCall) string {
	if callName.MatchString(c.Provider) {
		return c.Provider
	}
	return fmt.Sprintf("call_%d", c.ID)
}

// CallNames are those of a whole conversation, for the results. A name that is
// there twice would have one result answer for two calls.
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

// Arguments are those of a call, as the object that vendors demand. What is none
// was refused or failed when it was asked for; that it was asked for stays known.
func Arguments(c parley.MessageCall) map[string]any {
	var args map[string]any
	if json.Unmarshal([]byte(c.Arguments), &args) != nil || args == nil {
		return map[string]any{}
	}
	return args
}

// Schema is the schema of a tool's parameters; a tool without one takes none.
func Schema(t parley.ToolSpec) map[string]any {
	var schema map[string]any
	if json.Unmarshal([]byte(t.Parameters), &schema) != nil || schema == nil {
		schema = map[string]any{"type": "object", "properties": map[string]any{}}
	}
	return schema
}

// maxPages is the most pages of a document that every vendor reads.
const maxPages = 100

// Pages reports whether a vendor that reads documents is given the pages of one, and not its text.
func Pages(i parley.Image) bool {
	return i.Type == parley.TypePDF && (i.Pages <= maxPages || i.Text == "")
}

// DataURL is an image as a text.
func DataURL(i parley.Image) string {
	return "data:" + i.Type + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

// A Part of a turn, in the order in which the model made it: so many bytes of
// its text or its thinking, or one of its calls, and what the vendor attached
// to it. The words themselves are in the log and not kept twice.
type Part struct {
	Kind string `json:"kind"`           // text, thinking, call, or one of the vendor's own
	Size int    `json:"size,omitempty"` // of text and thinking
	Sign string `json:"sign,omitempty"`
	Data string `json:"data,omitempty"`
}

const (
	Text     = "text"
	Thinking = "thinking"
	Call     = "call"
)

// Memo is for the provider that made the parts, about the turn of a model. It is
// nil if there is nothing to remember, or too much.
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

// A Piece is a part of a turn with its words.
type Piece struct {
	Part
	Words string
	Call  parley.MessageCall
}

// Pieces takes a turn apart as it was made, if the memo is of this provider and
// model and still fits: a message that was changed since, by whatever, has none.
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

// Plain is a turn of which no more is known than what was said.
func Plain(m parley.Message) []Piece {
	pieces := []Piece{{Part: Part{Kind: Text}, Words: m.Text}}
	for _, c := range m.Calls {
		pieces = append(pieces, Piece{Part: Part{Kind: Call}, Call: c})
	}
	return pieces
}

// A Recorder notes the parts of a turn while they are said.
type Recorder struct{ parts []Part }

// Said notes text or thinking; what follows its like is one part with it, unless
// that was signed.
func (r *Recorder) Said(kind, words string) {
	if n := len(r.parts); n > 0 && r.parts[n-1].Kind == kind && r.parts[n-1].Sign == "" {
		r.parts[n-1].Size += len(words)
		return
	}
	r.parts = append(r.parts, Part{Kind: kind, Size: len(words)})
}

// Begin begins a new part, also after its like.
func (r *Recorder) Begin(p Part) { r.parts = append(r.parts, p) }

// Sign attaches what the vendor wants back to the last part.
func (r *Recorder) Sign(sign, data string) {
	if n := len(r.parts); n > 0 {
		r.parts[n-1].Sign += sign
		r.parts[n-1].Data += data
	}
}

// Memo is what is to be remembered.
func (r *Recorder) Memo(provider, model string) *parley.Memo { return Memo(provider, model, r.parts) }
