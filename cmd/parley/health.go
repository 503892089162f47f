package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

type healthCommand struct {
	Server  string        `placeholder:"URL" help:"Address of the server (default: $PARLEY_SERVER, or the server of this folder, or the address that parley serve would listen on)."`
	Ready   bool          `help:"Ask whether the server can store messages (/readyz), not only whether it answers (/healthz)."`
	Timeout time.Duration `default:"3s" help:"How long the server may take to answer."`
}

// Run serves container images, which have no other HTTP client. It exits with 0 or 1.
func (c *healthCommand) Run(p *program) error {
	address, err := c.address(p)
	if err != nil {
		return err
	}
	path := "/healthz"
	if c.Ready {
		path = "/readyz"
	}
	ctx, cancel := context.WithTimeout(p.ctx, c.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+path, nil)
	if err != nil {
		return err
	}
	// Use no proxy from the environment: the server itself has to answer.
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return fmt.Errorf("the server at %s does not answer: %w", address, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return fmt.Errorf("the server at %s does not answer: %w", address, err)
	}
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), `{"status":"`) {
		return fmt.Errorf("%s answers %s: %s", address, response.Status, firstLine(string(body)))
	}
	_, err = fmt.Fprintf(p.stdout, "%s: %s\n", address, strings.TrimSpace(string(body)))
	return err
}

func (c *healthCommand) address(p *program) (string, error) {
	given, _ := p.env("PARLEY_SERVER")
	if given = cmp.Or(c.Server, given); given != "" {
		if !strings.Contains(given, "://") {
			given = "http://" + given
		}
		return given, nil
	}
	settings, err := p.serveSettings()
	if err != nil {
		return "", err
	}
	at := settings.Listen
	if _, running := serverOn(settings.Data); running != "" {
		at = running
	}
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return "", fmt.Errorf("--listen %s: %w", at, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
