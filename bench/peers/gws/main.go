// Command relay forwards messages between WebSockets. It does the minimum of a
// Go server with one goroutine per connection. See ../README.md.
package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/lxzan/gws"
)

type relay struct {
	gws.BuiltinEventHandler

	mu       sync.RWMutex // guards channels
	channels map[string]map[*gws.Conn]bool
}

const channelKey = "channel"

func (r *relay) OnOpen(c *gws.Conn) {
	name, ok := c.Session().Load(channelKey)
	if !ok {
		return
	}
	r.mu.Lock()
	if r.channels[name.(string)] == nil {
		r.channels[name.(string)] = map[*gws.Conn]bool{}
	}
	r.channels[name.(string)][c] = true
	r.mu.Unlock()
	_ = c.WriteString("ready") // OnClose handles a lost connection
}

func (r *relay) OnClose(c *gws.Conn, _ error) {
	if name, ok := c.Session().Load(channelKey); ok {
		r.mu.Lock()
		delete(r.channels[name.(string)], c)
		r.mu.Unlock()
	}
}

func (r *relay) OnMessage(_ *gws.Conn, m *gws.Message) {
	defer m.Close()
	name, message, _ := bytes.Cut(m.Bytes(), []byte(" "))
	b := gws.NewBroadcaster(gws.OpcodeText, bytes.Clone(message))
	defer b.Close()
	r.mu.RLock()
	defer r.mu.RUnlock()
	for c := range r.channels[string(name)] {
		_ = b.Broadcast(c) // OnClose handles a lost connection
	}
}

func main() {
	r := &relay{channels: map[string]map[*gws.Conn]bool{}}
	up := gws.NewUpgrader(r, &gws.ServerOption{Authorize: func(request *http.Request, session gws.SessionStorage) bool {
		if name, ok := strings.CutPrefix(request.URL.Path, "/sub/"); ok {
			session.Store(channelKey, name)
		}
		return true
	}})
	http.HandleFunc("/", func(w http.ResponseWriter, request *http.Request) {
		socket, err := up.Upgrade(w, request)
		if err == nil {
			go socket.ReadLoop()
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "ready", l.Addr())
	fmt.Fprintln(os.Stderr, http.Serve(l, nil))
}
