package bus

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"parley"
	"parley/pacing"
)

const (
	// A notification is text of less than 8000 bytes.
	notifyRoom    = 7999 / 4 * 3
	notifyTimeout = 5 * time.Second
	notifyRetry   = 500 * time.Millisecond
	notifyAlive   = 10 * time.Second // how long a connection is quiet before it is pinged
)

// Postgres returns a bus over LISTEN and NOTIFY of the nodes' database, with
// two connections of its own. Messages over about 5900 bytes are not carried.
//
// A commit that notifies takes a lock that all other such commits of the server
// wait for. So notifications are sent together, in a transaction of their own,
// and never in one that appends events.
func Postgres(address string, o Options) (*Bus, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil { // the cause may contain the password
		return nil,
			&parley.Error{Code: parley.CodeInvalid, Message: "The address of the database cannot be understood.",
				Hint: "it has the form postgres://user:password@host:5432/database?sslmode=require"}
	}
	config.ConnectTimeout = notifyTimeout
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "parley bus"
	}
	return newBus(o, func(b *Bus) wire {
		w := &postgresWire{bus: b, config: config, epoch: o.Epoch, topics: map[string]string{}}
		w.ctx, w.stop = context.WithCancel(context.Background())
		return w
	}), nil
}

type postgresWire struct {
	bus    *Bus
	config *pgx.ConnConfig
	epoch  string
	ctx    context.Context
	stop   context.CancelFunc
	wg     sync.WaitGroup

	out   *pgx.Conn // of the sender
	retry time.Time // the sender does not connect again before this time

	mu        sync.Mutex // guards the following; leaf
	down      bool       // the log says that the database cannot be reached
	topics    map[string]string
	changed   bool   // the listener does not know the last change of topics
	interrupt func() // ends the wait of the listener; nil: it does not wait
}

// channel returns the channel of a topic. It is a hash, because names of
// channels are short.
func (w *postgresWire) channel(topic string) string {
	sum := sha256.Sum256([]byte(w.epoch + "\x00" + topic))
	return "parley_" + hex.EncodeToString(sum[:16])
}

func (w *postgresWire) start() { w.wg.Go(w.listen) }

func (w *postgresWire) close() {
	w.stop()
	w.wg.Wait()
	if w.out != nil {
		w.disconnect(w.out)
	}
}

func (w *postgresWire) disconnect(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

func (w *postgresWire) room() int { return notifyRoom }

func (w *postgresWire) connect() (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(w.ctx, notifyTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, w.config.Copy())
	w.mu.Lock()
	was := w.down
	w.down = err != nil
	w.mu.Unlock()
	switch {
	case w.ctx.Err() != nil:
	case err != nil && !was:
		w.bus.log.Warn("the bus over PostgreSQL is down; the nodes hear each other late until it is back", "error", err)
	case err == nil && was:
		w.bus.log.Info("the bus over PostgreSQL is back")
	}
	return conn, err
}

// send sends a batch of notifications in one statement. While there is no
// connection, messages are lost at once.
func (w *postgresWire) send(batch []outgoing) (sent int) {
	channels, payloads := make([]string, len(batch)), make([]string, len(batch))
	for i, m := range batch {
		channels[i] = w.channel(m.topic)
		payloads[i] = base64.StdEncoding.EncodeToString(m.sealed)
	}
	for try := 1; try <= 2; try++ { // the first connection may have died since it was used
		if w.out == nil {
			if time.Now().Before(w.retry) {
				break
			}
			conn, err := w.connect()
			if err != nil {
				w.retry = time.Now().Add(notifyRetry)
				break
			}
			w.out = conn
		}
		ctx, cancel := context.WithTimeout(w.ctx, notifyTimeout)
		_, err := w.out.Exec(ctx, `SELECT pg_notify(c, p) FROM unnest($1::text[], $2::text[]) AS m (c, p)`, channels,
			payloads)
		cancel()
		if err == nil {
			return len(batch)
		}
		w.disconnect(w.out)
		w.out = nil
	}
	for _, m := range batch {
		if m.ask != 0 {
			w.bus.settle(m.ask, nil)
		}
	}
	return 0
}

func (w *postgresWire) follow(topic string) { w.change(func() { w.topics[w.channel(topic)] = topic }) }
func (w *postgresWire) unfollow(topic string) {
	w.change(func() { delete(w.topics, w.channel(topic)) })
}

func (w *postgresWire) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	w.changed = true
	if w.interrupt != nil {
		w.interrupt()
	}
}

// wanted returns the topics to hear, by channel, and resets changed.
func (w *postgresWire) wanted() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = false
	return maps.Clone(w.topics)
}

// listen keeps a connection that receives notifications, and replaces it when
// it fails.
func (w *postgresWire) listen() {
	for w.ctx.Err() == nil {
		if conn, err := w.connect(); err == nil {
			w.hear(conn)
			w.disconnect(conn)
		}
		pacing.Sleep(w.ctx, notifyRetry)
	}
}

// hear delivers the notifications of a connection until it fails. First it
// reports messages as missed on all topics, because some may have come before
// the connection listened.
func (w *postgresWire) hear(conn *pgx.Conn) {
	heard := map[string]bool{} // channels
	for first := true; ; first = false {
		topics := w.wanted()
		if !w.adjust(conn, heard, topics) {
			return
		}
		if first {
			w.bus.missedAll()
		}
		for again, ok := false, true; !again; {
			var n *pgconn.Notification
			if n, again, ok = w.next(conn); !ok {
				return
			}
			if n == nil || topics[n.Channel] == "" {
				continue
			}
			sealed, err := base64.StdEncoding.DecodeString(n.Payload)
			if err != nil {
				sealed = nil // it is of a foreign program, and does not verify
			}
			w.bus.deliver(topics[n.Channel], sealed)
		}
	}
}

// next waits for a notification. again says that the topics have changed. After
// a long silence it pings the server.
func (w *postgresWire) next(conn *pgx.Conn) (n *pgconn.Notification, again, ok bool) {
	ctx, cancel := context.WithTimeout(w.ctx, notifyAlive)
	defer cancel()
	w.mu.Lock()
	w.interrupt, again = cancel, w.changed
	w.mu.Unlock()
	if again {
		return nil, true, true
	}
	n, err := conn.WaitForNotification(ctx)
	w.mu.Lock()
	w.interrupt, again = nil, w.changed
	w.mu.Unlock()
	switch {
	case err == nil:
		return n, again, true
	case w.ctx.Err() != nil || conn.IsClosed():
		return nil, false, false
	case again:
		return nil, true, true
	}
	ctx, cancel = context.WithTimeout(w.ctx, notifyTimeout)
	defer cancel()
	return nil, false, conn.Ping(ctx) == nil
}

// adjust makes a connection listen to the channels of these topics and to no
// others.
func (w *postgresWire) adjust(conn *pgx.Conn, heard map[string]bool, topics map[string]string) bool {
	var sql strings.Builder
	for channel := range topics {
		if !heard[channel] {
			heard[channel] = true
			sql.WriteString("LISTEN " + channel + ";")
		}
	}
	for channel := range heard {
		if _, ok := topics[channel]; !ok {
			delete(heard, channel)
			sql.WriteString("UNLISTEN " + channel + ";")
		}
	}
	if sql.Len() == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(w.ctx, notifyTimeout)
	defer cancel()
	_, err := conn.Exec(ctx, sql.String(), pgx.QueryExecModeSimpleProtocol)
	return err == nil
}
