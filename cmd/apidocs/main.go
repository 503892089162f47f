// Command apidocs writes the OpenAPI document of Parley's own routes and of OpenAI's, and the AsyncAPI document of the
// sockets. It derives them from the Go types. The server serves both: `go generate ./dialect/apidoc`.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/dialect"
	"parley/dialect/agentchat"
	"parley/dialect/agentloop"
	"parley/dialect/debugconsole"
	"parley/dialect/eventbus"
	"parley/dialect/native"
	"parley/dialect/openai"
	"parley/dialect/threadchat"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: apidocs FOLDER")
		os.Exit(2)
	}
	for name, text := range files() {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// files returns the documents by their file names.
func files() map[string][]byte {
	return map[string][]byte{"openapi.json": encode(openAPI()), "asyncapi.json": encode(asyncAPI())}
}

// encode writes keys in order, so that a document changes only where its content changes.
func encode(document schema) []byte {
	text, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		panic(err) // strings, numbers, lists and maps cannot fail
	}
	return append(text, '\n')
}

var variable = regexp.MustCompile(`\{(\w+)\}`)

// operations return the operations of the OpenAPI document, by dialect.
var operations = []func() map[string]dialect.Operation{native.Operations, openai.Operations}

// openAPI returns the document of the routes.
func openAPI() schema {
	s := newSchemas(native.Wire())
	paths := map[string]schema{}
	for _, described := range operations {
		for pattern, o := range described() {
			method, path, _ := strings.Cut(pattern, " ")
			if paths[path] == nil {
				paths[path] = schema{}
			}
			paths[path][strings.ToLower(method)] = operation(s, pattern, o)
		}
	}
	s.known["Error"] = schema{"type": "object", "required": []string{"error"},
		"properties": schema{"error": schema{"$ref": "#/components/schemas/Refusal"}}}
	return schema{
		"openapi": "3.1.0",
		"info": schema{"title": "Parley", "version": "1", "description": "Sessions with AI agents and their logs. " +
			"See docs/dialects/native.md and openai.md."},
		"paths": paths,
		"components": schema{"schemas": s.known, "securitySchemes": schema{
			"bearer": schema{"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}},
		"security": []schema{{"bearer": []string{}}, {}}, // local mode needs no token
	}
}

func operation(s *schemas, pattern string, o dialect.Operation) schema {
	parameters := []schema{}
	for _, v := range variable.FindAllStringSubmatch(pattern, -1) {
		parameters = append(parameters, schema{"name": v[1], "in": "path", "required": true,
			"schema": schema{"type": "string"}})
	}
	for _, name := range o.Query {
		parameters = append(parameters, schema{"name": name, "in": "query", "schema": schema{"type": "string"}})
	}
	content := schema{}
	switch {
	case o.Media != "":
		content[o.Media] = schema{"schema": schema{"type": "string"}}
	case o.Answer != nil:
		content["application/json"] = schema{"schema": s.of(reflect.TypeOf(o.Answer))}
	}
	if o.Events {
		content["text/event-stream"] = schema{"schema": schema{"type": "string"}}
	}
	answer := schema{"description": "Done."}
	if len(content) > 0 {
		answer["content"] = content
	}
	problem := schema{"$ref": "#/components/schemas/Error"}
	if o.Refused != nil {
		problem = s.of(reflect.TypeOf(o.Refused))
	}
	refused := schema{"description": "Refused.", "content": schema{"application/json": schema{"schema": problem}}}
	made := schema{"operationId": operationID(pattern), "summary": o.Summary, "parameters": parameters,
		"responses": schema{strconv.Itoa(o.Status): answer, "default": refused}}
	if o.Body != nil {
		made["requestBody"] = schema{"content": schema{"application/json": schema{
			"schema": s.of(reflect.TypeOf(o.Body))}}}
	}
	return made
}

// operationID derives the id of an operation from its route, such as get_sessions_id.
func operationID(pattern string) string {
	name := strings.NewReplacer(" ", "_", "/", "_", "{", "", "}", "").Replace(strings.ToLower(pattern))
	return strings.ReplaceAll(strings.ReplaceAll(name, "__", "_"), "_api_v1_", "_")
}

// sockets are the channels of the AsyncAPI document.
var sockets = map[string]struct {
	address  string
	messages func() dialect.Messages
}{
	"agentchat":    {"/ws", agentchat.Messages},
	"threadchat":   {"/api/chat/ws", threadchat.Messages},
	"agentloop":    {"/api/agentloop/ws", agentloop.Messages},
	"debugconsole": {"/api/v1/agents/{id}/ws", debugconsole.Messages},
	"eventbus":     {"/api/events", eventbus.Messages},
}

// asyncAPI returns the document of the sockets.
func asyncAPI() schema {
	channels, acts, messages := schema{}, schema{}, schema{}
	s := newSchemas(nil)
	for name, socket := range sockets {
		m, refs := socket.messages(), schema{}
		// The name of an operation is from the client's view.
		for action, list := range map[string]map[string]any{"receive": m.Sent, "send": m.Taken} {
			var used []schema
			for _, kind := range slices.Sorted(maps.Keys(list)) {
				key := name + "." + action + "." + strings.ReplaceAll(kind, ".", "_")
				key = strings.TrimSuffix(key, ".")
				messages[key] = schema{"name": kind, "payload": typed(s.of(reflect.TypeOf(list[kind])), kind)}
				refs[key] = schema{"$ref": "#/components/messages/" + key}
				used = append(used, schema{"$ref": "#/channels/" + name + "/messages/" + key})
			}
			if len(used) > 0 {
				acts[name+"."+action] = schema{"action": action, "channel": schema{"$ref": "#/channels/" + name},
					"messages": used}
			}
		}
		channel := schema{"address": socket.address, "messages": refs}
		if vars := variable.FindAllStringSubmatch(socket.address, -1); len(vars) > 0 {
			channel["parameters"] = schema{vars[0][1]: schema{"description": "The name of the agent."}}
		}
		channels[name] = channel
	}
	return schema{
		"asyncapi": "3.0.0",
		"info": schema{"title": "Parley", "version": "1", "description": "The sockets of Parley, as a client uses " +
			"them. See docs/dialects."},
		"defaultContentType": "application/json",
		"channels":           channels,
		"operations":         acts,
		"components":         schema{"messages": messages},
	}
}

// typed sets the constant value of the field type in a message's schema.
func typed(s schema, kind string) schema {
	if properties, ok := s["properties"].(schema); ok && kind != "" {
		properties["type"] = schema{"type": "string", "const": kind}
	}
	return s
}
