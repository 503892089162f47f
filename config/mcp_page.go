package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/port"
)

// PageServer checks and converts an MCP server that was set up in the console, by the rules for servers in the file.
// Its secrets are values instead of names of variables.
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
		if !variableName.MatchString(variable) {
			return s, fmt.Errorf("%.80q is no name of a variable: it has letters, digits and _", variable)
		}
		f.Env, values[variable] = append(f.Env, variable), value
	}
	for _, header := range slices.Sorted(maps.Keys(p.Headers)) {
		value := p.Headers[header]
		switch {
		case !headerName.MatchString(header):
			return s, fmt.Errorf("%.80q is not the name of a header: it has letters, digits and -", header)
		case strings.ContainsAny(value, "\r\n"):
			return s, fmt.Errorf("the value of the header %s has more than one line", header)
		}
		if f.HeadersEnv == nil {
			f.HeadersEnv = map[string]string{}
		}
		variable := fmt.Sprintf("header_%d", len(f.HeadersEnv))
		f.HeadersEnv[header], values[variable] = variable, value
	}
	s, key, err := f.read(name, func(name string) (string, bool) { value, ok := values[name]; return value, ok })
	if err != nil && key != "" {
		// The page has a field for headers, and none for headers_env.
		err = errors.New(strings.ReplaceAll(fmt.Sprintf("%s: %s", key, err), "headers_env", "headers"))
	}
	return s, err
}
