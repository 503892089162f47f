package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"parley"
)

// A ToolServer is an MCP server with a command or an address, as mcp.servers in
// the file of --config describes it.
type ToolServer struct {
	Name     string
	Tenants  []parley.TenantID // tenants that may use it; nil: only the default tenant
	Everyone bool              // every tenant may use it
	Trust    bool
	Timeout  time.Duration // zero: the default
	Idle     time.Duration // zero: the default

	Command     []string
	Env         []Variable
	Missing     []string // names of its variables that are not set
	Writes      bool     // may write to the workspace
	Read, Write []string // absolute paths of folders
	Network     bool
	Bare        bool // runs without a sandbox

	URL     SecretURL
	Headers map[string]Secret
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerName   = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
)

const maxToolServers = 32

// toolServers are the MCP servers of a file. Some commands ignore them.
type toolServers []ToolServer

// serverFile is an MCP server in the file.
type serverFile struct {
	Command    []string          `yaml:"command"`
	Env        []string          `yaml:"env"`
	Workspace  string            `yaml:"workspace"`
	Read       []string          `yaml:"read"`
	Write      []string          `yaml:"write"`
	Network    bool              `yaml:"network"`
	Sandbox    *bool             `yaml:"sandbox"`
	URL        string            `yaml:"url"`
	HeadersEnv map[string]string `yaml:"headers_env"`
	Tenants    []string          `yaml:"tenants"`
	Trust      bool              `yaml:"trust"`
	Timeout    string            `yaml:"timeout"`
	Idle       string            `yaml:"idle"`
}

// readToolServers reads the key mcp of a file.
func readToolServers(doc document, env Lookup) (toolServers, error) {
	var file struct {
		Servers map[string]serverFile `yaml:"servers"`
	}
	mapping, ok := doc.body.(ast.MapNode)
	if !ok {
		return nil, nil
	}
	for it := mapping.MapRange(); it.Next(); {
		if it.Key().GetToken().Value == "mcp" {
			if _, ok := it.Value().(ast.MapNode); !ok {
				return nil, at(doc.path, doc.line("mcp"), "mcp has servers: under it")
			}
			if err := yaml.NodeToValue(it.Value(), &file, yaml.Strict()); err != nil {
				return nil, doc.explain(err)
			}
		}
	}
	if len(file.Servers) > maxToolServers {
		return nil, at(doc.path, doc.line("mcp.servers"), "there are %d servers; at most %d can be used",
			len(file.Servers), maxToolServers)
	}
	var list toolServers
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) { // sorted, so that the first error is always the same
		s, key, err := file.Servers[name].read(name, env)
		if err != nil {
			where := "mcp.servers." + name
			what := where
			if key != "" {
				what += "." + key
			}
			line := doc.line(what)
			if line == 1 {
				line = doc.line(where)
			}
			return nil, at(doc.path, line, "%s: %w", what, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// read checks a server and converts it. key is the key that an error is about.
func (f serverFile) read(name string, env Lookup) (s ToolServer, key string, err error) {
	s = ToolServer{Name: name, Trust: f.Trust, Command: f.Command, Network: f.Network,
		URL: SecretURL(f.URL), Writes: f.Workspace == "write", Bare: f.Sandbox != nil && !*f.Sandbox}
	if !parley.ValidServerName(name) {
		return s, "", fmt.Errorf("a server's name has up to 31 of a-z, 0-9 and -, beginning with a letter")
	}
	if (len(f.Command) > 0) == (f.URL != "") {
		return s, "", fmt.Errorf("give it a command, like [my-server, --stdio], or a url; one of them")
	}
	for _, k := range []struct {
		key   string
		given bool
	}{{"env", f.Env != nil}, {"workspace", f.Workspace != ""}, {"read", f.Read != nil}, {"write", f.Write != nil},
		{"network", f.Network}, {"sandbox", f.Sandbox != nil}} {
		if k.given && f.URL != "" {
			return s, k.key, fmt.Errorf("this is for servers with a command; one with a url runs elsewhere")
		}
	}
	for _, tenant := range f.Tenants {
		if tenant == "*" {
			s.Everyone = true
			continue
		}
		if !parley.TenantID(tenant).Valid() {
			return s, "tenants", fmt.Errorf("%q is no tenant id", tenant)
		}
		s.Tenants = append(s.Tenants, parley.TenantID(tenant))
	}
	if f.Tenants != nil && len(f.Tenants) == 0 {
		return s, "tenants", fmt.Errorf("no tenant could use it; name tenants, '*' for all of them, or leave the key " +
			"out for the default tenant")
	}
	if s.Timeout, err = duration(f.Timeout, time.Second, time.Hour); err != nil {
		return s, "timeout", err
	}
	if s.Idle, err = duration(f.Idle, time.Second, 24*time.Hour); err != nil {
		return s, "idle", err
	}
	if f.URL != "" {
		key, err = s.readHeaders(f, env)
		return s, key, err
	}
	key, err = s.readCommand(f, env)
	return s, key, err
}

func (s *ToolServer) readCommand(f serverFile, env Lookup) (key string, err error) {
	switch {
	case f.HeadersEnv != nil:
		return "headers_env", fmt.Errorf("this is for servers with a url; one with a command is given env")
	case slices.ContainsFunc(f.Command, func(word string) bool { return strings.ContainsRune(word, 0) }) ||
		parley.IsBlank(f.Command[0]):
		return "command", fmt.Errorf("the program is missing")
	case !slices.Contains([]string{"", "read", "write"}, f.Workspace):
		return "workspace", fmt.Errorf("it is read or write, not %q", f.Workspace)
	}
	if program := f.Command[0]; strings.Contains(program, "/") {
		if s.Command[0], err = filepath.Abs(program); err != nil {
			return "command", err
		}
	}
	for _, name := range f.Env {
		if err := checkProgramVariable(name); err != nil {
			return "env", err
		}
		if value, ok := env(name); ok {
			s.Env = append(s.Env, newVariable(name, value))
		} else {
			s.Missing = append(s.Missing, name)
		}
	}
	if s.Read, err = folders(f.Read); err != nil {
		return "read", err
	}
	s.Write, err = folders(f.Write)
	return "write", err
}

func (s *ToolServer) readHeaders(f serverFile, env Lookup) (key string, err error) {
	u, err := url.Parse(f.URL) // not repeated, because it may hold a password
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "url", fmt.Errorf("this is not the address of a server; write it like https://host/mcp")
	case u.User != nil:
		return "url", fmt.Errorf("it holds a user name or password; send credentials by headers_env")
	case u.Scheme == "http" && len(f.HeadersEnv) > 0 && !isLoopback(u.Hostname()):
		return "url", fmt.Errorf("headers_env would go over the network unencrypted; use https")
	}
	s.Headers = map[string]Secret{}
	for _, header := range slices.Sorted(maps.Keys(f.HeadersEnv)) {
		name := f.HeadersEnv[header]
		switch value, ok := env(name); {
		case !headerName.MatchString(header):
			return "headers_env", fmt.Errorf("%.80q is not the name of a header", header)
		case !variableName.MatchString(name) || strings.HasPrefix(name, "PARLEY_"):
			return "headers_env", fmt.Errorf("%.80q is no name of a variable; only names stand here, values come from "+
				"the environment", name)
		case !ok:
			s.Missing = append(s.Missing, name)
		case strings.ContainsAny(value, "\r\n"):
			return "headers_env", fmt.Errorf("the value of %s has more than one line", name)
		default:
			s.Headers[header] = Secret(value)
		}
	}
	return "", nil
}

func folders(names []string) (paths []string, err error) {
	for _, name := range names {
		path, err := filepath.Abs(name)
		if err != nil || !isFolder(path) {
			return nil, fmt.Errorf("%s is not a folder", name)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// duration parses a duration between two limits. An empty text is zero.
func duration(text string, least, most time.Duration) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, fmt.Errorf("%q is not a time from %s to %s, like 90s", text, least, most)
	}
	return d, nil
}
