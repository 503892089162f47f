package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/port"
)

func raw(arguments string) json.RawMessage { return json.RawMessage(arguments) }

// result converts the answer of a server for the model. Text is passed on;
// other content is only described.
func result(r *sdk.CallToolResult) port.ToolResult {
	if r.NeedsInput() {
		return port.ToolResult{Text: "The server wants to ask something back, which it cannot do here. It did not " +
			"finish the call.", Failed: true}
	}
	var parts []string
	for _, c := range r.Content {
		parts = append(parts, described(c))
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		if raw, err := json.Marshal(r.StructuredContent); err == nil {
			parts = append(parts, string(raw))
		}
	}
	text := strings.Join(parts, "\n")
	if text == "" {
		text = "(it answered with nothing)"
	}
	return port.ToolResult{Text: text, Failed: r.IsError}
}

func described(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return fmt.Sprintf("[an image, %s, %d bytes]", line(c.MIMEType, 80), len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[a sound, %s, %d bytes]", line(c.MIMEType, 80), len(c.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("[a resource at %s: %s]", line(c.URI, 500), line(c.Name+" "+c.Description, 500))
	case *sdk.EmbeddedResource:
		if r := c.Resource; r != nil && r.Text != "" {
			return fmt.Sprintf("[a resource, %s]\n%s", line(r.URI, 500), r.Text)
		} else if r != nil {
			return fmt.Sprintf("[a resource, %s, %s, %d bytes]", line(r.URI, 500), line(r.MIMEType, 80), len(r.Blob))
		}
	}
	return "[something that is not text]"
}

// refusal returns the error message that a server sent instead of carrying out
// a call.
func refusal(err error) (string, bool) {
	if e, ok := errors.AsType[*refusedError](err); ok {
		return e.Error(), true
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && !slices.Contains(ownCodes, e.Code) {
		return line(e.Message, 2000), true
	}
	return "", false
}

// ownCodes are the codes of errors that the SDK makes itself: the client is
// closing, the server is closing, the transport failed.
var ownCodes = []int64{-32003, -32004, -32005}

func isRefused(err error) bool {
	_, ok := errors.AsType[*refusedError](err)
	return ok
}

// isForgotten reports whether the server no longer knows the session. It has
// not carried out the call then.
func isForgotten(err error) bool { return errors.Is(err, sdk.ErrSessionMissing) }
