package parley

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// Nearly all events of a log are chunks of outputs, and decoding them is most of
// the work of reading a log. Chunks in the form that this release writes are
// decoded without a general parser. The general parser decodes all others, and
// reports errors.

func decodeOutputAppended(raw json.RawMessage) (EventBody, error) {
	if piece, ok := plainPiece(raw); ok {
		return piece, nil
	}
	var body OutputAppended
	err := json.Unmarshal(raw, &body)
	return body, err
}

// plainPiece decodes {"output":7,"kind":"text","offset":0,"text":"…"} without
// escapes, spaces or other keys.
func plainPiece(raw []byte) (p OutputAppended, ok bool) {
	var output, offset int64
	var kind, text []byte
	rest := raw
	if output, rest, ok = number(rest, `{"output":`); !ok {
		return p, false
	}
	if kind, rest, ok = plainText(rest, `,"kind":"`); !ok {
		return p, false
	}
	if offset, rest, ok = number(rest, `,"offset":`); !ok {
		return p, false
	}
	if text, rest, ok = plainText(rest, `,"text":"`); !ok || string(rest) != "}" {
		return p, false
	}
	p = OutputAppended{Output: OutputID(output), Offset: int(offset), Text: string(text)}
	switch string(kind) {
	case string(Text):
		p.Kind = Text
	case string(Thinking):
		p.Kind = Thinking
	default:
		return p, false
	}
	return p, true
}

func number(raw []byte, after string) (n int64, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(raw, []byte(after))
	end := 0
	for end < len(rest) && '0' <= rest[end] && rest[end] <= '9' {
		end++
	}
	if !ok || end == 0 || end > 1 && rest[0] == '0' {
		return 0, nil, false
	}
	n, err := strconv.ParseInt(string(rest[:end]), 10, 64)
	return n, rest[end:], err == nil
}

func plainText(raw []byte, after string) (text, rest []byte, ok bool) {
	if raw, ok = bytes.CutPrefix(raw, []byte(after)); !ok {
		return nil, nil, false
	}
	for i, c := range raw {
		switch {
		case c == '"':
			return raw[:i], raw[i+1:], utf8.Valid(raw[:i])
		case c == '\\' || c < ' ':
			return nil, nil, false
		}
	}
	return nil, nil, false
}
