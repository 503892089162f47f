package config

import (
	"fmt"

	"parley/port"
)

// PageServer makes sense of an MCP server that was set up in the console, by the rules for those of the file. Its
// secrets are values, not names of variables.
func PageServer(name string, p port.ServerSetup) (s ToolServer, err error) {
	values := map[string]string{}
	f := serverFile{Command: append([]string(nil), p.Command...), URL: p.URL, Read: p.Read, Network: p.Network}
	if p.Writes {
		f.Workspace = "write"
	}
	if p.Bare {
		f.Sandbox = new(bool)
	}
	for variable, value := range p.Env {
		f.Env, values[variable] = append(f.Env, variable), value
	}
	for header, value := range p.Headers {
		if f.HeadersEnv == nil {
			f.HeadersEnv = map[string]string{}
		}
		variable := fmt.Sprintf("header_%d", len(f.HeadersEnv))
		f.HeadersEnv[header], values[variable] = variable, value
	}
	s, key, err := f.read(name, func(name string) (string, bool) { value, ok := values[name]; return value, ok })
	if err != nil && key != "" {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return s, err
}
