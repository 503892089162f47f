package acp

import (
	"bytes"
	"encoding/json"
	"strings"

	"parley"
)

// This file has the messages of the Agent Client Protocol, version 1, as far as
// Parley reads or writes them. Parley ignores other fields and messages.

const protocolVersion = 1

const (
	methodInitialize = "initialize"
	methodNew        = "session/new"
	methodLoad       = "session/load"
	methodPrompt     = "session/prompt"
	methodCancel     = "session/cancel"

	methodUpdate     = "session/update" // notification from the program
	methodPermission = "session/request_permission"
	methodRead       = "fs/read_text_file"
	methodWrite      = "fs/write_text_file"
	methodTerminal   = "terminal/create"
	methodOutput     = "terminal/output"
	methodWait       = "terminal/wait_for_exit"
	methodKill       = "terminal/kill"
	methodRelease    = "terminal/release"
)

type (
	initializeParams struct {
		Version      int          `json:"protocolVersion"`
		Capabilities capabilities `json:"clientCapabilities"`
		Info         info         `json:"clientInfo"`
	}
	capabilities struct {
		Files struct {
			Read  bool `json:"readTextFile"`
			Write bool `json:"writeTextFile"`
		} `json:"fs"`
		Terminal bool `json:"terminal"`
	}
	info struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	initializeResult struct {
		Version      int `json:"protocolVersion"`
		Capabilities struct {
			Load bool `json:"loadSession"`
		} `json:"agentCapabilities"`
	}
	sessionParams struct {
		Session string     `json:"sessionId,omitempty"`
		Cwd     string     `json:"cwd"`
		Servers []struct{} `json:"mcpServers"`
	}
	sessionResult struct {
		Session string `json:"sessionId"`
	}
	promptParams struct {
		Session string  `json:"sessionId"`
		Prompt  []block `json:"prompt"`
	}
	promptResult struct {
		Stop  string `json:"stopReason"`
		Usage struct {
			Input   int64 `json:"inputTokens"`
			Output  int64 `json:"outputTokens"`
			Thought int64 `json:"thoughtTokens"`
			Read    int64 `json:"cachedReadTokens"`
			Written int64 `json:"cachedWriteTokens"`
		} `json:"usage"`
	}
	ofSession struct {
		Session string `json:"sessionId"`
	}

	updateParams struct {
		ofSession
		Update update `json:"update"`
	}
	// An update has the fields of all kinds of updates. Kind tells which kind it is.
	update struct {
		Kind    string          `json:"sessionUpdate"`
		Content json.RawMessage `json:"content"`   // a block; of a tool call, a list
		Message string          `json:"messageId"` // of a chunk
		toolFields
		Entries []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"entries"` // of a plan
		Used int64 `json:"used"` // of usage
		Size int64 `json:"size"`
		Cost *struct {
			Amount   float64 `json:"amount"`
			Currency string  `json:"currency"`
		} `json:"cost"`
		Severity    string `json:"severity"` // of a notice
		Description string `json:"description"`
	}
	toolFields struct {
		ID        string          `json:"toolCallId"`
		Title     string          `json:"title"` // also of a notice
		Name      string          `json:"name"`
		Tool      string          `json:"kind"`
		Status    string          `json:"status"`
		Input     json.RawMessage `json:"rawInput"`
		Output    json.RawMessage `json:"rawOutput"`
		Locations []struct {
			Path string `json:"path"`
		} `json:"locations"`
	}
	permissionParams struct {
		ofSession
		Call struct {
			toolFields
			Content json.RawMessage `json:"content"`
		} `json:"toolCall"`
		Options []option `json:"options"`
	}
	option struct {
		ID   string `json:"optionId"`
		Kind string `json:"kind"`
	}
	permissionResult struct {
		Outcome outcome `json:"outcome"`
	}
	outcome struct {
		Outcome string `json:"outcome"`
		Option  string `json:"optionId,omitempty"`
	}

	readParams struct {
		ofSession
		Path  string `json:"path"`
		Line  int    `json:"line"`
		Limit int    `json:"limit"`
	}
	writeParams struct {
		ofSession
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	terminalParams struct {
		ofSession
		Command string   `json:"command"`
		Args    []string `json:"args"`
		Env     []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"env"`
		Cwd   string `json:"cwd"`
		Limit *int   `json:"outputByteLimit"`
	}
	ofTerminal struct {
		ofSession
		Terminal string `json:"terminalId"`
	}
	terminalResult struct {
		Terminal string `json:"terminalId"`
	}
	outputResult struct {
		Output    string      `json:"output"`
		Truncated bool        `json:"truncated"`
		Exit      *exitStatus `json:"exitStatus,omitempty"`
	}
	exitStatus struct {
		Code   *int    `json:"exitCode"`
		Signal *string `json:"signal"`
	}
)

// A block is a part of a message.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	URI      string `json:"uri,omitempty"` // of a resource_link
	Name     string `json:"name,omitempty"`
	Resource *struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource,omitempty"`
}

func textBlock(text string) block { return block{Type: "text", Text: text} }

// words returns the text of a block.
func (b block) words() string {
	switch {
	case b.Type == "text":
		return b.Text
	case b.Type == "resource_link":
		return "[" + b.Name + "](" + b.URI + ")"
	case b.Type == "resource" && b.Resource != nil && b.Resource.Text != "":
		return b.Resource.Text
	}
	return "(" + b.Type + ")"
}

// A part is a part of a tool call's content: a block, a change of a file, or a terminal.
type part struct {
	Type    string `json:"type"`
	Content block  `json:"content"`
	Path    string `json:"path"`
	Old     string `json:"oldText"`
	New     string `json:"newText"`
}

// A change is a change of a file by a tool call, as a person sees it.
type change struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new"`
}

// arguments describe one of the program's own calls. The same call always gives the same arguments.
type arguments struct {
	Title   string          `json:"title,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Changes []change        `json:"changes,omitempty"`
	Paths   []string        `json:"paths,omitempty"`
}

func (t *toolCall) arguments() string {
	a := arguments{Title: t.fields.Title, Input: compact(t.fields.Input)}
	for _, p := range t.content {
		if p.Type == "diff" {
			a.Changes = append(a.Changes, change{p.Path, p.Old, p.New})
		}
	}
	for _, l := range t.fields.Locations {
		a.Paths = append(a.Paths, l.Path)
	}
	return encode(a)
}

// encode returns v as JSON, without HTML escapes.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "{}"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(raw) == 0 || string(raw) == "null" || json.Compact(&b, raw) != nil {
		return nil
	}
	return b.Bytes()
}

// result returns the text that a call shows as its result.
func (t *toolCall) result() string {
	var texts []string
	for _, p := range t.content {
		switch p.Type {
		case "content":
			texts = append(texts, p.Content.words())
		case "diff":
			texts = append(texts, "changed "+p.Path)
		}
	}
	if len(texts) == 0 {
		if raw := compact(t.fields.Output); raw != nil {
			var text string
			if json.Unmarshal(raw, &text) != nil {
				text = string(raw)
			}
			texts = append(texts, text)
		}
	}
	text := strings.Join(texts, "\n")
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "\n(the rest was left out)"
	}
	return text
}

const maxShown = 64 << 10 // maximum bytes of the result of the program's own call

// tool returns the name of the tool of a call, as far as the program tells it.
func (t *toolCall) tool() string {
	name := t.fields.Name
	if name == "" {
		name = t.fields.Tool
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/", r) {
			return r
		}
		return '_'
	}, name)
	if name = name[:min(len(name), parley.MaxName)]; name == "" {
		return "other"
	}
	return name
}

// statuses maps the status of a plan entry.
var statuses = map[string]parley.ItemStatus{"in_progress": parley.ItemInProgress, "completed": parley.ItemDone}

// stops maps the reason for the end of an answer.
var stops = map[string]parley.Stop{"end_turn": parley.StopEnd, "max_tokens": parley.StopLength,
	"max_turn_requests": parley.StopLength, "refusal": parley.StopRefusal}
