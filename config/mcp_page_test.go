package config

import (
	"strings"
	"testing"

	"parley/port"
)

// TestPageServerErrors checks that errors use the words of the page, headers and variables, instead of keys of the
// configuration file.
func TestPageServerErrors(t *testing.T) {
	const url = "https://x.example/mcp"
	for want, p := range map[string]port.ServerSetup{
		`"X Y" is not the name of a header`:                  {URL: url, Headers: map[string]string{"X Y": "x"}},
		"the value of the header X-A has more than one line": {URL: url, Headers: map[string]string{"B": "x", "X-A": "x\ny"}},
		"send credentials by headers":                        {URL: "https://a:b@x.example"},
		"url: headers would go over the network unencrypted": {URL: "http://x.example", Headers: map[string]string{"A": "x"}},
		"headers: this is for servers with a url":            {Command: []string{"x"}, Headers: map[string]string{"A": "x"}},
		`"A B" is no name of a variable: it has`:             {Command: []string{"x"}, Env: map[string]string{"A B": "x"}},
	} {
		_, err := PageServer("x", p)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "headers_env") ||
			strings.Contains(err.Error(), "header_") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s, err := PageServer("x", port.ServerSetup{URL: url, Headers: map[string]string{"A": "x", "B": "y"}})
	if err != nil || s.Headers["A"] != "x" || s.Headers["B"] != "y" {
		t.Errorf("%+v, %v", s, err)
	}
}
