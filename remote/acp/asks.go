package acp

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/port"
	"parley/transport/jsonrpc"
)

// This file handles the requests of a program. Files and terminals become calls of the server's own tools; other
// packages judge, allow and execute them.

const codeCancelled = -32800

// request handles a request. The reader calls it.
func (a *answer) request(method string, params json.RawMessage, respond jsonrpc.Answer) {
	var of ofSession
	if err := json.Unmarshal(params, &of); err != nil {
		respond(nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "The parameters cannot be read: %v.", err))
		return
	}
	if of.Session != a.session {
		respond(nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "There is no session %.80q.", of.Session))
		return
	}
	switch method {
	case methodPermission:
		takes(a.permission)(params, respond)
	case methodRead:
		takes(a.read)(params, respond)
	case methodWrite:
		takes(a.write)(params, respond)
	case methodTerminal:
		takes(a.terminal)(params, respond)
	case methodOutput, methodWait, methodKill, methodRelease:
		takes(func(p ofTerminal, respond jsonrpc.Answer) { a.ofTerminal(method, p, respond) })(params, respond)
	default:
		respond(nil, jsonrpc.Errorf(jsonrpc.CodeNoMethod, "There is no method %.80q.", method))
	}
}

// takes returns a handler that decodes the parameters of a request.
func takes[P any](do func(P, jsonrpc.Answer)) func(json.RawMessage, jsonrpc.Answer) {
	return func(raw json.RawMessage, respond jsonrpc.Answer) {
		var p P
		if err := json.Unmarshal(raw, &p); err != nil {
			respond(nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "The parameters cannot be read: %v.", err))
			return
		}
		do(p, respond)
	}
}

// permission asks a person for a decision.
func (a *answer) permission(p permissionParams, respond jsonrpc.Answer) {
	var content []part
	_ = json.Unmarshal(p.Call.Content, &content) // content that cannot be decoded is not shown
	t := a.tool(p.Call.toolFields, content)
	if t == nil || t.ended {
		respond(nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "There is no tool call %.80q that could be allowed.",
			p.Call.ID))
		return
	}
	key := a.key()
	a.mu.Lock()
	full := len(a.open) >= maxApprovals
	if !full && !a.over {
		a.open[key] = &permission{p.Options, respond}
	}
	over := a.over
	a.mu.Unlock()
	switch {
	case over:
		respond(permissionResult{outcome{Outcome: "cancelled"}}, nil)
		return
	case full:
		respond(nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "%d permissions are asked for already.", maxApprovals))
		return
	}
	t.keys = append(t.keys, key)
	a.say(port.RemoteSaid{Approval: &port.RemoteApproval{Key: key, Name: t.tool(), Arguments: t.arguments(),
		Target: strings.Join(t.paths(), ", ")}})
}

func (t *toolCall) paths() (list []string) {
	for _, l := range t.fields.Locations {
		list = append(list, l.Path)
	}
	return list
}

// call asks the server to make a call. m gets its progress.
func (a *answer) call(tool string, arguments any, m *made) (key string) {
	key = a.key()
	a.mu.Lock()
	full, over := len(a.made) >= maxMade, a.over
	if !full && !over {
		a.made[key] = m
	}
	a.mu.Unlock()
	switch {
	case over:
		m.ended(port.RemoteResult{Outcome: parley.CallCancelled})
	case full:
		m.ended(port.RemoteResult{Outcome: parley.CallFailed,
			Text: fmt.Sprintf("%d files and terminals are in use already.", maxMade)})
	default:
		a.say(port.RemoteSaid{Call: &port.RemoteCall{Key: key, Name: tool, Arguments: encode(arguments)}})
	}
	return key
}

// refusal returns the error for a request whose call did not succeed.
func refusal(r port.RemoteResult) *jsonrpc.Error {
	switch {
	case r.Outcome == parley.CallCancelled:
		return jsonrpc.Errorf(codeCancelled, "This was cancelled.")
	case r.Text == "":
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "This failed.")
	}
	return jsonrpc.Errorf(jsonrpc.CodeInternal, "%s", r.Text)
}

// whole returns a call that is answered only once, with its result.
func whole(respond jsonrpc.Answer, result func(text string) any) *made {
	return &made{started: func() {}, printed: func(string) {}, ended: func(r port.RemoteResult) {
		if r.Outcome != parley.CallSucceeded {
			respond(nil, refusal(r))
			return
		}
		respond(result(r.Text), nil)
	}}
}

// relative returns a path relative to the project, as the server's tools expect it. It leaves other paths as they are:
// the workspace refuses them.
func (a *answer) relative(path string) string {
	for _, root := range a.roots {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsAbs(path) && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return path
}

func (a *answer) read(p readParams, respond jsonrpc.Answer) {
	arguments := struct {
		Path   string `json:"path"`
		Offset int    `json:"offset,omitempty"`
		Limit  int    `json:"limit,omitempty"`
	}{a.relative(p.Path), p.Line, p.Limit}
	a.call("read_file", arguments, whole(respond, func(text string) any {
		return map[string]string{"content": text}
	}))
}

func (a *answer) write(p writeParams, respond jsonrpc.Answer) {
	arguments := struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}{a.relative(p.Path), p.Content}
	a.call("write_file", arguments, whole(respond, func(string) any { return struct{}{} }))
}

// A terminal is a command that the server runs for the program. Its fields are
// guarded by answer.mu.
type terminal struct {
	key     string
	limit   int
	output  string
	cut     bool // the beginning of the output was cut off
	exit    *exitStatus
	waiting []jsonrpc.Answer
}

const (
	longest        = 10 * 60 * 1000 // maximum duration of a command, in milliseconds
	maxTerminalOut = 1 << 20        // maximum size of the kept output, in bytes
)

func (a *answer) terminal(p terminalParams, respond jsonrpc.Answer) {
	argv := append([]string{p.Command}, p.Args...)
	if len(p.Args) == 0 && strings.ContainsAny(p.Command, " \t\n|&;<>()$`\\\"'*?[#~") {
		argv = []string{"bash", "-c", p.Command}
	}
	if len(p.Env) > 0 {
		set := []string{"env"}
		for _, v := range p.Env {
			set = append(set, v.Name+"="+v.Value)
		}
		argv = append(set, argv...)
	}
	arguments := struct {
		Command []string `json:"command"`
		Workdir string   `json:"workdir,omitempty"`
		Timeout int      `json:"timeout_ms"`
	}{argv, "", longest}
	if p.Cwd != "" && a.relative(p.Cwd) != "." {
		arguments.Workdir = a.relative(p.Cwd)
	}
	t := &terminal{limit: maxTerminalOut}
	if p.Limit != nil && *p.Limit >= 0 {
		t.limit = min(*p.Limit, maxTerminalOut)
	}
	id := "terminal-" + a.key()
	created := func() { respond(terminalResult{id}, nil) }
	a.mu.Lock()
	a.terminals[id] = t
	a.mu.Unlock()
	key := a.call("shell", arguments, &made{started: created, printed: func(text string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		t.print(text)
	}, ended: func(r port.RemoteResult) {
		respond(nil, refusal(r)) // only if created has not been called
		a.mu.Lock()
		t.end(r)
		waiting, exit := t.waiting, t.exit
		t.waiting = nil
		a.mu.Unlock()
		for _, respond := range waiting {
			respond(exit, nil)
		}
	}})
	a.mu.Lock()
	t.key = key
	a.mu.Unlock()
}

// print adds output. It keeps only the end.
func (t *terminal) print(text string) {
	t.output += text
	if over := len(t.output) - t.limit; over > 0 {
		for over < len(t.output) && !utf8.RuneStart(t.output[over]) {
			over++
		}
		t.output, t.cut = t.output[over:], true
	}
}

// end records the end of the command. The result may have the complete output.
func (t *terminal) end(r port.RemoteResult) {
	if r.Text != "" {
		t.output, t.cut = "", false
		t.print(r.Text)
	}
	killed := "SIGKILL"
	t.exit = &exitStatus{Code: r.Exit}
	if r.Exit == nil {
		t.exit.Signal = &killed
	}
}

func (a *answer) ofTerminal(method string, p ofTerminal, respond jsonrpc.Answer) {
	a.mu.Lock()
	t := a.terminals[p.Terminal]
	if t == nil {
		a.mu.Unlock()
		respond(nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "There is no terminal %.80q.", p.Terminal))
		return
	}
	output, exit := outputResult{t.output, t.cut, t.exit}, t.exit
	switch {
	case method == methodWait && exit == nil:
		t.waiting = append(t.waiting, respond)
	case method == methodRelease:
		delete(a.terminals, p.Terminal)
	}
	a.mu.Unlock()
	switch {
	case method == methodOutput:
		respond(output, nil)
	case method == methodWait && exit != nil:
		respond(exit, nil)
	case method == methodKill || method == methodRelease:
		if exit == nil {
			a.say(port.RemoteSaid{Drop: t.key})
		}
		respond(struct{}{}, nil)
	}
}
