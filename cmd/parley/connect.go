package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley"
	"parley/client"
	"parley/config"
	"parley/pacing"
	"parley/port"
)

// serverFlags select the server of a command.
type serverFlags struct {
	Server string `placeholder:"URL" help:"Address of the server (default: $PARLEY_SERVER, or the server of this folder, or http://127.0.0.1:8080)."`
	Token  string `placeholder:"TEXT" help:"Access token, for a server with --auth jwt; parley token prints one. Prefer the variable: other users of the machine can see flags. ($PARLEY_TOKEN)"`
}

// A connection is a client of a server that a flag or variable names, that was found, or that this process started.
type connection struct {
	*client.Client
	program *program
	flags   serverFlags
	lock    string // data folder whose lock gave the address; empty if it came from elsewhere
	brief   bool   // another command started the server for itself and will stop it
	own     *host  // nil if the server is another process
	logs    *logLimiter
}

// newClient returns a client of the server at an address. An empty address is the default one.
func (p *program) newClient(address string, f serverFlags) (*client.Client, error) {
	token := f.Token
	if token == "" {
		token, _ = p.env("PARLEY_TOKEN")
	}
	return client.New(address, client.Options{Token: token})
}

// connect selects the server of a command: the server that a flag or variable names, else the server that uses this
// folder's data, else the server at the default address. It does not start a server.
func (p *program) connect(f serverFlags) (*connection, error) {
	c := &connection{program: p, flags: f}
	address, _ := p.env("PARLEY_SERVER")
	address = cmp.Or(f.Server, address)
	if address == "" {
		if settings, err := p.serveSettings(); err == nil {
			if _, at := serverOn(settings.Data); at != "" {
				address, c.lock = openAtText(at), settings.Data
				c.brief = servesACommand(settings.Data)
			}
		}
	}
	var err error
	c.Client, err = p.newClient(address, f)
	return c, err
}

// with connects to the server of a command and passes the connection to do.
func (p *program) with(f serverFlags, do func(to *connection) error) error {
	to, err := p.connect(f)
	if err != nil {
		return err
	}
	defer to.close()
	return do(to)
}

// maybeSession is sessionNamed for a flag that may be empty.
func (c *connection) maybeSession(given string) (parley.SessionID, error) {
	if given == "" {
		return "", nil
	}
	return sessionNamed(c.program.ctx, c.Client, given)
}

// withSession is like with, for commands about a session. The session is given by its id or the beginning of it.
func (p *program) withSession(f serverFlags, given string, do func(to *connection, id parley.SessionID) error) error {
	return p.with(f, func(to *connection) error {
		id, err := sessionNamed(p.ctx, to.Client, given)
		if err != nil {
			return err
		}
		return do(to, id)
	})
}

// connectOrStart is like connect. If no server runs, it starts one in this process, for this folder.
func (p *program) connectOrStart(ctx context.Context, f serverFlags, settings ...string) (*connection, error) {
	for begun := time.Now(); ; {
		c, err := p.connect(f)
		if err != nil {
			return nil, err
		}
		_, err = c.Me(ctx)
		_, away := errors.AsType[*client.Unreachable](err)
		switch named, _ := p.env("PARLEY_SERVER"); {
		case err == nil, !away, f.Server != "", named != "":
			if err != nil {
				c.close()
			}
			return c, err
		case c.lock == "":
			c.close()
			return p.start(ctx, f, settings...)
		}
		// A server that holds the lock and does not answer is starting or stopping.
		c.close()
		if time.Since(begun) > lockedWithin {
			return nil, err
		}
		if !pacing.Sleep(ctx, lockedPause) {
			return nil, ctx.Err()
		}
	}
}

const (
	lockedWithin = 20 * time.Second // longer than a server takes to stop
	lockedPause  = 100 * time.Millisecond
)

// start starts a server in this process. The server logs only warnings and errors.
func (p *program) start(ctx context.Context, f serverFlags, settings ...string) (*connection, error) {
	if c, err := p.serveSettings(settings...); err == nil && c.Auth != "local" {
		return nil, errors.New("the server of this folder is not running. Its settings want tokens (PARLEY_AUTH=" +
			c.Auth + "), and a command does not start such a server; start it with `parley serve`, or name another " +
			"server with --server or PARLEY_SERVER")
	}
	c, err := p.serveSettings(append([]string{"--listen", "127.0.0.1:0", "--auth", "local", "--metrics-listen=",
		"--admin-listen="}, settings...)...)
	if err != nil {
		return nil, err
	}
	c.ForACommand = true
	logs := newLogLimiter(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	h, err := build(ctx, c, p.env, slog.New(logs))
	if err != nil {
		logs.Close()
		if _, at := serverOn(c.Data); at != "" { // another process was faster and holds the lock
			return p.connectOrStart(ctx, f, settings...)
		}
		return nil, err
	}
	h.start()
	own := &connection{program: p, flags: f, own: h, logs: logs}
	own.Client, err = p.newClient(h.banner.address, serverFlags{})
	return own, err
}

// close closes the client, and stops the server if this process started it.
func (c *connection) close() {
	c.Client.Close()
	if c.own != nil {
		c.own.stop()
		c.logs.Close()
	}
}

// serveSettings returns the settings that parley serve would have in this folder. The given flags override them.
func (p *program) serveSettings(args ...string) (*config.Settings, error) {
	var cli commands
	k, err := p.parser(&cli)
	if err != nil {
		return nil, err
	}
	_, err = k.Parse(append([]string{"serve"}, args...))
	return &cli.Serve.Settings, err
}

// openAtText is openAt for an address in text form.
func openAtText(address string) string {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return "http://" + address
	}
	return openAt(at)
}

// projectHere returns the project of a command: the given one or, on this machine, the one that contains the current
// folder. An empty project means the server's first. elsewhere lists the folders in which a local server works, if none
// of them contains the current one.
func (c *connection) projectHere(ctx context.Context, given string) (project, elsewhere string, err error) {
	if given != "" {
		if info, err := os.Stat(given); err == nil && info.IsDir() { // else: an id, or a folder elsewhere
			given, err = filepath.Abs(given)
			return given, "", err
		}
		return given, "", nil
	}
	here, err := os.Getwd()
	if err != nil || !isLoopback(c.Address()) {
		return "", "", nil
	}
	if real, err := filepath.EvalSymlinks(here); err == nil {
		here = real
	}
	projects, err := c.Projects(ctx)
	if err != nil || len(projects) == 0 {
		return "", "", err
	}
	for _, p := range projects {
		if inside, err := filepath.Rel(p.Root, here); err == nil && filepath.IsLocal(inside) {
			return p.Root, "", nil
		}
	}
	elsewhere = projects[0].Root
	for _, p := range projects[1:] {
		elsewhere += " and " + p.Root
	}
	return "", elsewhere, nil
}

// worksElsewhere describes the folders in which a local server works, as projectHere found them.
func worksElsewhere(address, folders string) string {
	return fmt.Sprintf("(the server at %s works in %s, not in this folder)", address, folders)
}

func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback() || u.Hostname() == "localhost"
}

// sessionNamed returns the session for a whole id, or for the beginning of the id of a recent session.
func sessionNamed(ctx context.Context, c *client.Client, given string) (parley.SessionID, error) {
	id := parley.SessionID(strings.ToLower(given))
	if id.Valid() {
		return id, nil
	}
	if len(id) < 4 {
		return "", fmt.Errorf("%q is not a session id; parley sessions lists them, and the first 4 characters are "+
			"enough", given)
	}
	list, err := c.Sessions(ctx, client.SessionQuery{Transient: true, Archived: port.AlsoArchived,
		Limit: 200})
	if err != nil {
		return "", err
	}
	var found []parley.SessionID
	for _, s := range list {
		if strings.HasPrefix(string(s.ID), string(id)) {
			found = append(found, s.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no recent session has an id that begins with %q; parley sessions lists them", given)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%d sessions have an id that begins with %q; give more of it", len(found), given)
}
