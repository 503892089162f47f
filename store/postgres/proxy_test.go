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

// A proxy stands between a store and its server, understands what the store
// says, and can cut the line at a commit.
type proxy struct {
	url           string // of the database, through the proxy
	network, addr string // of the server
	listener      net.Listener
	wg            sync.WaitGroup

	mu    sync.Mutex // guards the following
	fault fault
	cuts  int  // how many lines were cut by a fault
	down  bool // new lines are refused
	open  map[net.Conn]bool
}

type fault int

const (
	none         fault = iota
	beforeCommit       // the server never hears of the commit
	afterCommit        // the server has committed, and its answer is lost
	thenDown           // the same, and the server cannot be reached afterwards
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

// arm has the next commit meet a fault.
func (p *proxy) arm(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.cuts = f, 0
}

// heal lets lines through again, and says how many the fault has cut.
func (p *proxy) heal() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
	return p.cuts
}

// strike takes the fault for a commit that is on its way.
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
	swallow := make(chan fault, 1) // set when the answer to a commit is to be lost
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

// answers passes on what the server says, until a commit whose answer is to be
// lost: then it waits until the server has given it.
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
