package upstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxEvent is the maximum length of a line in a stream.
const maxEvent = 32 << 20

// Events reads the server-sent events of an answer. A provider decodes only the
// fields that it needs.
type Events struct {
	scanner *bufio.Scanner
	Type    string // type of the event
	Data    []byte // data of the event, never empty; valid until the next one is read
	err     error
}

func NewEvents(body io.Reader) *Events {
	s := bufio.NewScanner(body)
	s.Buffer(nil, maxEvent)
	return &Events{scanner: s}
}

// Next reads the next event that has data. It returns false at the end.
func (e *Events) Next() bool {
	e.Type, e.Data = "", e.Data[:0]
	for e.scanner.Scan() {
		line := e.scanner.Bytes()
		if len(line) == 0 {
			if len(e.Data) > 0 {
				return true
			}
			e.Type = ""
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.Type = string(value)
		case "data":
			if len(e.Data) > 0 {
				e.Data = append(e.Data, '\n')
			}
			e.Data = append(e.Data, value...)
		}
	}
	e.err = e.scanner.Err()
	return false
}

// Err returns why the stream ended; nil: the server has ended it.
func (e *Events) Err() error { return e.err }

// Decode decodes the event into v. It leaves out fields of other types than in
// v, because servers differ. An event that is not an object is
// an error.
func (e *Events) Decode(v any) error {
	err := json.Unmarshal(e.Data, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return nil
	}
	return err
}

// Present reports whether a field exists and is not null.
func Present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// A Loose text is a string. If a server sends another type, it is the JSON of
// that.
type Loose string

func (l *Loose) UnmarshalJSON(raw []byte) error {
	switch {
	case raw[0] == '"':
		return unquote(raw, (*string)(l))
	case string(raw) != "null":
		*l = Loose(raw)
	}
	return nil
}

// A Strict text is a string. If a server sends another type, it is empty.
type Strict string

func (s *Strict) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return unquote(raw, (*string)(s))
	}
	return nil
}

// unquote decodes a JSON string. Most have no escapes.
func unquote(raw []byte, text *string) error {
	if words := raw[1 : len(raw)-1]; bytes.IndexByte(words, '\\') < 0 && utf8.Valid(words) {
		*text = string(words)
		return nil
	}
	return json.Unmarshal(raw, text)
}

// A Count is a whole number, in any JSON form.
type Count int64

func (c *Count) UnmarshalJSON(raw []byte) error {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err == nil {
		*c = Count(n)
		return nil
	}
	if f, err := strconv.ParseFloat(string(bytes.Trim(raw, `"`)), 64); err == nil && f == f {
		*c = Count(f)
	}
	return nil
}

// Unclear is the error for an event that a server sends instead of an answer
// and that has no message.
func Unclear(data []byte) error { return fmt.Errorf("received error while streaming: %s", data) }
