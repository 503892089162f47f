package bus

import (
	"crypto/sha256"
	"encoding/base32"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"parley"
)

const (
	natsRoom    = 1 << 20 // the default limit of a NATS server, until the server has sent its own
	natsPending = 8192    // messages that were received and not yet handed out
	natsRetry   = 250 * time.Millisecond
)

// NATS returns a bus over core NATS. The URL may name several servers of one
// cluster, separated by commas. No server at the start is no error: the bus
// connects when there is one.
func NATS(address string, o Options) (*Bus, error) {
	for part := range strings.SplitSeq(address, ",") {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			// The cause may contain the password.
			return nil, &parley.Error{Code: parley.CodeInvalid, Message: "The address of NATS cannot be understood.",
				Hint: "it has the form nats://user:password@host:4222"}
		}
	}
	return newBus(o, func(b *Bus) wire {
		return &natsWire{bus: b, address: address, prefix: natsPrefix(o.Epoch), topics: map[string]bool{},
			changed: make(chan struct{}, 1), pending: make(chan *nats.Msg, natsPending), done: make(chan struct{})}
	}), nil
}

// natsPrefix returns the prefix of all subjects of a database.
func natsPrefix(epoch string) string {
	sum := sha256.Sum256([]byte(epoch))
	return "parley." + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10])) + "."
}

// A natsWire has one subscription per topic, all with one channel, which one
// goroutine empties. If the channel is full, the client library drops messages.
type natsWire struct {
	bus     *Bus
	address string
	prefix  string
	pending chan *nats.Msg
	changed chan struct{} // makes the subscriber look at topics
	done    chan struct{}
	wg      sync.WaitGroup
	down    atomic.Bool // the log says that NATS cannot be reached
	conn    atomic.Pointer[nats.Conn]
	most    atomic.Int64 // limit of a message in bytes; 0: not known yet

	mu     sync.Mutex // guards the following; leaf
	topics map[string]bool
}

func (w *natsWire) start() {
	w.wg.Go(w.subscribe)
	w.wg.Go(w.hear)
}

// connect waits for the first attempt only; the library makes the others. It
// returns nil if the options of the address are invalid, so that no attempt can
// succeed.
func (w *natsWire) connect() *nats.Conn {
	again := func(conn *nats.Conn) {
		w.most.Store(conn.MaxPayload())
		if w.down.Swap(false) {
			w.bus.log.Info("connected to NATS")
		}
		w.bus.missedAll()
	}
	conn, err := nats.Connect(w.address, nats.Name("parley"), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(natsRetry), nats.ReconnectJitter(natsRetry, natsRetry), nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(), nats.Timeout(2*time.Second), nats.PingInterval(5*time.Second),
		nats.MaxPingsOutstanding(2), nats.NoEcho(), nats.ConnectHandler(again), nats.ReconnectHandler(again),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { w.lost(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { w.lost(err) }),
		nats.ErrorHandler(w.failed))
	if err != nil { // the address was checked, so this is about its options
		w.bus.log.Error("NATS cannot be used; the nodes hear each other late", "error", w.clean(err))
		return nil
	}
	_, _ = conn.ChanSubscribe(w.nobody()+"*", w.pending)
	w.conn.Store(conn)
	return conn
}

// subscribe keeps one subscription for each topic, as topics come and go.
func (w *natsWire) subscribe() {
	conn := w.connect()
	subs := map[string]*nats.Subscription{}
	for conn != nil {
		w.mu.Lock()
		var added, gone []string
		for topic := range w.topics {
			if subs[topic] == nil {
				added = append(added, topic)
			}
		}
		for topic := range subs {
			if !w.topics[topic] {
				gone = append(gone, topic)
			}
		}
		w.mu.Unlock()
		for _, topic := range added {
			if sub, err := conn.ChanSubscribe(w.prefix+topic, w.pending); err == nil { // else the connection is closed
				subs[topic] = sub
			}
		}
		for _, topic := range gone {
			_ = subs[topic].Unsubscribe()
			delete(subs, topic)
		}
		select {
		case <-w.changed:
		case <-w.done:
			return
		}
	}
}

// lost logs that the connection is gone, once.
func (w *natsWire) lost(err error) {
	select {
	case <-w.done:
	default:
		if !w.down.Swap(true) {
			w.bus.log.Warn("NATS cannot be reached; the nodes hear each other late until it is back",
				"error", w.clean(err))
		}
	}
}

// clean returns the text of an error without the credentials of the address.
func (w *natsWire) clean(err error) string {
	if err == nil {
		return "connection closed"
	}
	text := err.Error()
	for part := range strings.SplitSeq(w.address, ",") {
		if u, err := url.Parse(strings.TrimSpace(part)); err == nil && u.User != nil {
			text = strings.ReplaceAll(text, u.User.String(), "…")
			if p, ok := u.User.Password(); ok && p != "" {
				text = strings.ReplaceAll(text, p, "…")
			}
			if name := u.User.Username(); !strings.Contains(u.User.String(), ":") && name != "" { // a token
				text = strings.ReplaceAll(text, name, "…")
			}
		}
	}
	return text
}

// failed handles connection errors, and messages that the library has dropped
// because the channel is full.
func (w *natsWire) failed(_ *nats.Conn, sub *nats.Subscription, err error) {
	if sub == nil {
		w.lost(err)
		return
	}
	if n, err := sub.Dropped(); err == nil && n > 0 {
		w.bus.lost.Add(1)
	}
	if topic, ok := strings.CutPrefix(sub.Subject, w.prefix); ok {
		w.bus.missed(topic)
	}
}

// nobody returns the prefix of the subjects on which a server says that a
// question has no receiver.
func (w *natsWire) nobody() string { return w.prefix + "x" + replyTopic(w.bus.self) + "." }

func (w *natsWire) close() {
	close(w.done)
	w.wg.Wait()
	if conn := w.conn.Load(); conn != nil {
		if conn.IsConnected() {
			_ = conn.FlushTimeout(time.Second)
		}
		conn.Close()
	}
}

func (w *natsWire) send(batch []outgoing) (sent int) {
	conn := w.conn.Load()
	for _, m := range batch {
		var err error
		switch {
		case conn == nil:
			err = nats.ErrDisconnected
		case m.ask != 0:
			err = conn.PublishRequest(w.prefix+m.topic, w.nobody()+strconv.FormatUint(uint64(m.ask), 16), m.sealed)
		default:
			err = conn.Publish(w.prefix+m.topic, m.sealed)
		}
		if err == nil {
			sent++
		} else if m.ask != 0 {
			w.bus.settle(m.ask, nil)
		}
	}
	return sent
}

func (w *natsWire) follow(topic string)   { w.change(func() { w.topics[topic] = true }) }
func (w *natsWire) unfollow(topic string) { w.change(func() { delete(w.topics, topic) }) }

func (w *natsWire) change(do func()) {
	w.mu.Lock()
	do()
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default: // it will look anyway
	}
}

func (w *natsWire) hear() {
	for {
		select {
		case m := <-w.pending:
			if id, ok := strings.CutPrefix(m.Subject, w.nobody()); ok {
				if n, err := strconv.ParseUint(id, 16, 64); err == nil {
					w.bus.settle(askID(n), nil)
				}
			} else if topic, ok := strings.CutPrefix(m.Subject, w.prefix); ok {
				w.bus.deliver(topic, m.Data)
			}
		case <-w.done:
			return
		}
	}
}

func (w *natsWire) room() int {
	if n := w.most.Load(); n > 0 {
		return int(n)
	}
	return natsRoom
}
