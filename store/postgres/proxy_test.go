package postgres

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// A proxy stands between a store and its server, parses the store's messages,
// and can cut the connection at a commit.
type proxy struct {
	url           string // URL of the database through the proxy
	network, addr string // of the server
	listener      net.Listener
	wg            sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	fault fault
	cuts  int  // number of connections cut by a fault
	down  bool // refuse new connections
	open  map[net.Conn]bool
}

type fault int

const (
	none         fault = iota
	beforeCommit       // the server does not get the commit
	afterCommit        // the server commits, but its answer is lost
	thenDown           // as afterCommit, and the server cannot be reached afterwards
)

func newProxy(t *testing.T, database string) *proxy {
	config, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, open: map[net.Conn]bool{}}
	p.network, p.addr = pgconn.NetworkAddress(config.Host, config.Port)
	p.url = (&url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: l.Addr().String(),
		Path: "/" + config.Database, RawQuery: "sslmode=disable"}).String()
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		for c := range p.open {
			c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

// arm sets the fault for the next commit.
func (p *proxy) arm(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.cuts = f, 0
}

// heal lets connections through again, and returns how many the fault has cut.
func (p *proxy) heal() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
	return p.cuts
}

// strike takes the armed fault for a commit under way.
func (p *proxy) strike() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.fault
	if p.fault = none; f != none {
		p.cuts++
	}
	return f
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(p.network, p.addr)
		p.mu.Lock()
		if err != nil || p.down {
			client.Close()
			if err == nil {
				server.Close()
			}
		} else {
			p.open[client], p.open[server] = true, true
			p.wg.Go(func() { p.serve(client, server) })
		}
		p.mu.Unlock()
	}
}

func (p *proxy) serve(client, server net.Conn) {
	swallow := make(chan fault, 1) // gets the fault when the answer to a commit must be lost
	hangUp := func() {
		client.Close()
		server.Close()
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer hangUp()
		p.answers(client, server, swallow)
	})
	p.requests(client, server, swallow)
	hangUp()
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, client)
	delete(p.open, server)
}

func (p *proxy) requests(client, server net.Conn, swallow chan<- fault) {
	messages := pgproto3.NewBackend(client, nil)
	first, err := messages.ReceiveStartupMessage()
	if err != nil || !forward(server, first) {
		return
	}
	statements := map[string]string{}
	for {
		m, err := messages.Receive()
		if err != nil {
			return
		}
		switch m := m.(type) {
		case *pgproto3.Parse:
			statements[m.Name] = m.Query
		case *pgproto3.Bind:
			if statements[m.PreparedStatement] == "commit" {
				switch f := p.strike(); f {
				case beforeCommit:
					return
				case afterCommit, thenDown:
					swallow <- f
				}
			}
		}
		if !forward(server, m) {
			return
		}
	}
}

func forward(to io.Writer, m pgproto3.FrontendMessage) bool {
	raw, err := m.Encode(nil)
	if err == nil {
		_, err = to.Write(raw)
	}
	return err == nil
}

// answers passes on the server's messages, except the answer to a commit that
// must be lost. For that, it waits until the server has sent the answer.
func (p *proxy) answers(client, server net.Conn, swallow <-chan fault) {
	buf := make([]byte, 64<<10)
	var lost []byte
	var f fault
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		select {
		case f = <-swallow:
		default:
		}
		if f == none {
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
			continue
		}
		if lost = append(lost, buf[:n]...); bytes.Contains(lost, []byte("COMMIT\x00")) {
			p.mu.Lock()
			p.down = f == thenDown
			p.mu.Unlock()
			return
		}
	}
}
