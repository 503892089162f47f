package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"sync"

	"parley"
	"parley/client"
	"parley/tui"
)

// hasScreen reports whether input and output are a terminal that supports the full screen.
func (p *program) hasScreen() bool {
	kind, _ := p.env("TERM")
	return isTerminal(p.stdin) && isTerminal(p.stdout) && kind != "dumb"
}

// fullScreen runs the chat on the whole screen. c.Server is empty if the person named no server.
func (c chatCommand) fullScreen(p *program) error {
	if err := checkThread(c.Thread); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	errs := &heldBack{}
	quiet := *p
	quiet.stderr = errs // the log of a server in this process must not overwrite the screen
	defer func() { _, _ = p.stderr.Write(errs.bytes()) }()
	found := &foundServer{program: &quiet, flags: serverFlags{Server: c.Server, Token: c.Token},
		settings: settingsFor(c.Project)}
	defer found.close()
	first, err := found.find(ctx)
	if err != nil {
		return err
	}
	var session parley.SessionID // empty: a new session
	if c.Thread != "" {
		if session, err = sessionNamed(ctx, first, c.Thread); err != nil {
			return err
		}
	}
	project, elsewhere, err := found.to.projectHere(ctx, c.Project)
	if err != nil {
		return err
	}
	o := tui.Options{Client: first, Session: session, Agent: c.Agent, Project: project, Elsewhere: elsewhere,
		In: p.stdin, Out: p.stdout, Env: os.Environ()}
	if found.to.brief {
		o.Again = found.again
	}
	visit, err := tui.Run(ctx, o)
	if visit.Session != "" {
		if visit.Used.CostMicros > 0 {
			fmt.Fprintf(p.stdout, "This chat has cost %s.\n", dollars(visit.Used.CostMicros))
		}
		again := "parley chat --thread " + string(visit.Session)
		if c.Server != "" && c.Server != usualServer {
			again += " --server " + c.Server
		}
		fmt.Fprintf(p.stdout, "Go on with: %s\n", again)
	}
	return err
}

// A foundServer is the server of a chat, which may change during the chat.
type foundServer struct {
	program  *program
	flags    serverFlags
	settings []string // flags for a server that the chat starts
	to       *connection
	patient  *client.Client
}

// find finds the server of the folder, or starts one.
func (f *foundServer) find(ctx context.Context) (*client.Client, error) {
	f.close()
	to, err := f.program.connectOrStart(ctx, f.flags, f.settings...)
	if err != nil {
		return nil, err
	}
	f.to = to
	token := f.flags.Token
	if to.own != nil { // a server in this process needs no token
		token = ""
	}
	f.patient, err = client.New(to.Address(), client.Options{Token: token, Patient: true})
	return f.patient, err
}

// again finds another server after the loss of a server that ends with a command. For a server that parley serve
// started it returns nil, because that server comes back at its address.
func (f *foundServer) again(ctx context.Context) (*client.Client, error) {
	if !f.to.brief {
		return nil, nil
	}
	return f.find(ctx)
}

func (f *foundServer) close() {
	if f.to != nil {
		f.to.close()
		f.to = nil
	}
	if f.patient != nil {
		f.patient.Close()
	}
}

var threadPattern = regexp.MustCompile(`^[0-9a-fA-F][0-9a-fA-F-]{3,35}$`)

// checkThread checks the value of --thread before a server is looked for.
func checkThread(given string) error {
	if given != "" && !threadPattern.MatchString(given) {
		return fmt.Errorf("--thread %s is not the id of a thread; parley sessions lists them, and the first 4 "+
			"characters are enough", given)
	}
	return nil
}

// heldBack keeps the last mostHeldBack bytes that are written to it.
type heldBack struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

const mostHeldBack = 64 << 10

func (h *heldBack) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept.Write(b)
	if over := h.kept.Len() - mostHeldBack; over > 0 {
		h.kept.Next(over)
	}
	return len(b), nil
}

func (h *heldBack) bytes() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return bytes.Clone(h.kept.Bytes())
}
