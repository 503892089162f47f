package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/port"
)

// An offered tool is a tool as its server describes it.
type offered struct {
	name        string
	description string
	schema      string // JSON schema of the arguments, with sorted keys
	reads       bool   // hint: it only reads
	repeats     bool   // hint: repeating a call has no further effect
	digest      string // of the whole description

	unusable string // why the tool cannot be offered to any model
	suspect  string // why a person should look at it first
}

const (
	maxDescription = 4 << 10 // bytes that a model gets
	maxSchema      = 64 << 10
	maxPages       = 64 // of a list of tools
)

// list asks a server for its tools. It ignores tools beyond the limit.
func list(ctx context.Context, session *sdk.ClientSession, server string, screen port.Screen) ([]offered, error) {
	if caps := session.InitializeResult().Capabilities; caps != nil && caps.Tools == nil {
		return nil, nil
	}
	var tools []offered
	seen := map[string]bool{}
	cursor := ""
	for range maxPages {
		page, err := session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			if t == nil || seen[t.Name] {
				continue
			}
			if len(tools) == parley.MaxServerTools {
				return tools, nil
			}
			seen[t.Name] = true
			tools = append(tools, offer(t, server, screen))
		}
		if cursor = page.NextCursor; cursor == "" {
			return tools, nil
		}
	}
	return nil, errors.New("its list of tools has no end")
}

func offer(t *sdk.Tool, server string, screen port.Screen) offered {
	o := offered{name: t.Name, description: t.Description}
	schema, err := json.Marshal(t.InputSchema)
	o.schema = string(schema)
	if a := t.Annotations; a != nil {
		o.reads, o.repeats = a.ReadOnlyHint, a.IdempotentHint
	}
	o.digest = port.Digest("tool", t.Name, t.Title, t.Description, o.schema,
		strconv.FormatBool(o.reads), strconv.FormatBool(o.repeats))
	switch _, isObject := t.InputSchema.(map[string]any); {
	case !parley.ValidServerTool(server, t.Name):
		o.unusable = "its name and that of the server have more than 64 characters, or others than letters, digits, - and _"
	case err != nil || !isObject:
		o.unusable = "the schema of its arguments is not a JSON Schema of an object"
	case len(schema) > maxSchema:
		o.unusable = fmt.Sprintf("the schema of its arguments is longer than %d bytes", maxSchema)
	}
	if screen != nil {
		if f := screen.Scan(nil, parley.CleanText(t.Description+"\n"+o.schema)); f.Verdict == parley.ScreenFlag ||
			f.Verdict == parley.ScreenBlock {
			o.suspect = f.Reason
		}
	}
	return o
}

func (t offered) full(server string) string { return server + parley.ServerSeparator + t.name }

// shown returns the description that a model gets.
func (t offered) shown() string {
	text := parley.CleanText(t.description)
	if len(text) > maxDescription {
		cut := maxDescription
		for text[cut]&0xC0 == 0x80 {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}

// class returns what a crash during a call means. Hints of a server that is not
// trusted are ignored.
func (t offered) class(trusted bool) parley.ToolClass {
	switch {
	case trusted && t.reads:
		return parley.Pure
	case trusted && t.repeats:
		return parley.Idempotent
	}
	return parley.Effectful
}

func (t offered) availableAs(accepted map[string]string) bool {
	return t.unusable == "" && accepted[t.name] == t.digest
}

// why returns why the tool is not available.
func (t offered) why(accepted map[string]string) string {
	const first = "a user with agents:write must accept it first"
	switch {
	case t.unusable != "":
		return t.unusable
	case accepted[t.name] != "":
		return "its description or its schema has changed since it was accepted; " + first
	case t.suspect != "":
		return "its description or its schema was flagged (" + t.suspect + "); " + first
	}
	return "the server did not have it when it was first used; " + first
}

func (t offered) info(server string, accepted map[string]string) port.ServerTool {
	info := port.ServerTool{Name: t.full(server), Status: "available", Description: parley.CleanText(t.description),
		Digest: t.digest, Accepted: accepted[t.name]}
	if t.unusable == "" {
		info.Parameters = json.RawMessage(t.schema)
	}
	switch {
	case t.unusable != "":
		info.Status, info.Reason = "unusable", t.unusable
	case !t.availableAs(accepted):
		info.Status, info.Reason = "waiting", t.why(accepted)
	}
	return info
}
