package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"runtime"
	"strings"

	"parley/config"
	"parley/provider"
)

// A banner tells the person who started a server in a terminal what to do next.
type banner struct {
	address string // URL to open in a browser on this machine
	model   string
	agents  []string
	data    string
	warning string
}

func newBanner(c *config.Settings, at net.Addr, projects []*project, models *provider.Models) banner {
	b := banner{address: openAt(at), model: models.Default(), data: c.Data, warning: demoHint(c, models)}
	if models.Provider(b.model) == provider.Demo {
		b.model += " (scripted answers)"
	}
	if c.DatabaseURL != "" {
		b.data += " (sessions are in PostgreSQL)"
	}
	for _, p := range projects {
		for _, a := range p.agents.List(p.Tenant) {
			name := a.Name
			if len(projects) > 1 {
				name += " (" + p.Name + ")"
			}
			b.agents = append(b.agents, name)
		}
	}
	return b
}

func (b banner) String() string {
	warning := ""
	if b.warning != "" {
		warning = "  Warning " + b.warning + "\n"
	}
	chat := "parley chat"
	if b.address != usualServer {
		chat += " --server " + b.address
	}
	return fmt.Sprintf(`
Parley is ready. Open %s in a browser, or run: %s
Ctrl-C stops the server.

  Model   %s
  Agents  %s
  Data    %s
%s
`, b.address, chat, b.model, strings.Join(b.agents, ", "), b.data, warning)
}

// browse opens an address in the browser of the person who started the server. The
// returned channel is closed when the browser program has ended, soon after ctx
// ends at the latest.
func browse(ctx context.Context, address string, log *slog.Logger) chan struct{} {
	command := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "darwin":
		command[0] = "open"
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := exec.CommandContext(ctx, command[0], command[1:]...).Run(); err != nil && ctx.Err() == nil {
			log.Warn("no browser was opened; open the address yourself", "address", address, "error", err)
		}
	}()
	return done
}
