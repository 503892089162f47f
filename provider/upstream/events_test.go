package upstream

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEventsAreReadLineByLine(t *testing.T) {
	const body = ": a comment\n\nevent: first\ndata: {\"a\":1}\n\ndata:two\r\ndata: lines\r\n\r\nevent: empty\n\n" +
		"id: 7\ndata: [DONE]\n\ndata: not ended"
	events := NewEvents(strings.NewReader(body))
	var got []string
	for events.Next() {
		got = append(got, events.Type+"|"+string(events.Data))
	}
	if want := "first|{\"a\":1}, |two\nlines, |[DONE]"; strings.Join(got, ", ") != want || events.Err() != nil {
		t.Errorf("%q, %v", got, events.Err())
	}
}

func TestAnEventThatIsTooLongIsAnError(t *testing.T) {
	events := NewEvents(strings.NewReader("data: " + strings.Repeat("x", maxEvent) + "\n\n"))
	if events.Next() || events.Err() == nil {
		t.Error("it was read")
	}
}

// TestFieldsAreReadLoosely checks fields of different types, because servers
// differ. An event that is not an object is an error.
func TestFieldsAreReadLoosely(t *testing.T) {
	type fields struct {
		Loose  Loose
		Strict Strict
		Count  Count
		List   []struct{ Count Count }
		Error  json.RawMessage
	}
	for _, c := range []struct {
		data string
		want fields
		bad  bool
	}{
		{data: `{"loose":"a\u00e4\n","strict":"é","count":3}`, want: fields{Loose: "aä\n", Strict: "é", Count: 3}},
		{data: `{"loose":null,"strict":null,"count":null,"list":null}`},
		{data: `{"loose":{"a":[1]},"strict":{},"count":"12"}`, want: fields{Loose: `{"a":[1]}`, Count: 12}},
		{data: `{"loose":5,"count":12.0,"unknown":[{}]}`, want: fields{Loose: "5", Count: 12}},
		{data: `{"list":{},"count":1e2}`, want: fields{Count: 100}},
		{data: `{"count":true,"loose":true}`, want: fields{Loose: "true"}},
		{data: `"text"`, bad: true},
		{data: `[]`, bad: true},
		{data: `{"loose":"a"`, bad: true},
	} {
		var got fields
		err := (&Events{Data: []byte(c.data)}).Decode(&got)
		if (err != nil) != c.bad || !c.bad && (got.Loose != c.want.Loose || got.Strict != c.want.Strict ||
			got.Count != c.want.Count || len(got.List) != len(c.want.List)) {
			t.Errorf("%s: %+v, %v", c.data, got, err)
		}
	}
	for raw, want := range map[string]bool{``: false, `null`: false, `{}`: true, `"no"`: true} {
		if Present(json.RawMessage(raw)) != want {
			t.Errorf("%q", raw)
		}
	}
}

// TestTextIsReadAsByTheStandardLibrary compares strings with any content.
func TestTextIsReadAsByTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(`"` + strings.Map(func(r rune) rune {
			if r < ' ' || r == '"' || r == '\\' {
				return '\u00e4'
			}
			return r
		}, rapid.String().Draw(t, "text")) + rapid.SampledFrom([]string{"", `\n`, `\u00e4`, `\"`, "\xff"}).Draw(t,
			"end") + `"`)
		var want string
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Skip(err)
		}
		var loose Loose
		var strict Strict
		if json.Unmarshal(raw, &loose) != nil || json.Unmarshal(raw, &strict) != nil || string(loose) != want ||
			string(strict) != want {
			t.Fatalf("%s: %q, %q", raw, loose, strict)
		}
	})
}
