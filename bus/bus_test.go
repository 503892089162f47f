package bus

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"parley"
	"parley/port"
	"parley/store/postgres/pgtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pgtest.Stop()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

var _ port.Bus = (*Bus)(nil)

var key = []byte("the key that the nodes share")

// A system makes buses that hear each other, if their options agree.
type system struct {
	join func(testing.TB, Options) *Bus
	// inject publishes bytes like a foreign program.
	inject func(t testing.TB, epoch, topic string, raw []byte)
	large  int // size of the largest sealed message
}

func systems(t *testing.T, test func(*testing.T, system)) {
	t.Run("nats", func(t *testing.T) { test(t, onNATS(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, onPostgres(t)) })
	t.Run("memory", func(t *testing.T) { test(t, inMemory(Faults{})) })
}

// natsServer runs a NATS server in this process; port -1: any free one.
func natsServer(t testing.TB, port int, change ...func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true}
	for _, c := range change {
		c(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

func onNATS(t testing.TB) system {
	s := natsServer(t, -1)
	return system{
		join: func(t testing.TB, o Options) *Bus { return begin(t, must(NATS(s.ClientURL(), o))) },
		inject: func(t testing.TB, epoch, topic string, raw []byte) {
			conn := must(nats.Connect(s.ClientURL()))
			defer conn.Close()
			if err := errors.Join(conn.Publish(natsPrefix(epoch)+topic, raw), conn.Flush()); err != nil {
				t.Fatal(err)
			}
		},
		large: natsRoom,
	}
}

func onPostgres(t testing.TB) system {
	address := pgtest.Database(t)
	return system{
		join: func(t testing.TB, o Options) *Bus { return begin(t, must(Postgres(address, o))) },
		inject: func(t testing.TB, epoch, topic string, raw []byte) {
			conn := must(pgx.Connect(t.Context(), address))
			defer conn.Close(context.Background())
			w, text := &postgresWire{epoch: epoch}, string(raw)
			if !utf8.ValidString(text) {
				text = base64.StdEncoding.EncodeToString(raw)
			}
			if _, err := conn.Exec(t.Context(), `SELECT pg_notify($1, $2)`, w.channel(topic), text); err != nil {
				t.Fatal(err)
			}
		},
		large: notifyRoom,
	}
}

func inMemory(f Faults) system {
	m := NewMemory(1, f)
	return system{
		join:   func(t testing.TB, o Options) *Bus { return begin(t, m.Join(o)) },
		inject: func(_ testing.TB, epoch, topic string, raw []byte) { m.Inject(epoch, topic, raw) },
		large:  natsRoom,
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func begin(t testing.TB, b *Bus) *Bus {
	b.Start()
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

func (s system) node(t testing.TB) *Bus { return s.join(t, Options{Epoch: "one", Key: key}) }

// An ear records the messages that it hears.
type ear struct {
	t     testing.TB
	heard chan string // "": messages may be missing
	stop  func()
}

func listen(t testing.TB, b *Bus, topic string) *ear {
	e := &ear{t: t, heard: make(chan string, 10_000)}
	e.stop = b.Listen(topic, func(m []byte) { e.heard <- string(m) })
	return e
}

// next returns the next message. It skips notices that messages may be missing.
func (e *ear) next() string {
	e.t.Helper()
	for {
		if m := e.any(); m != "" {
			return m
		}
	}
}

func (e *ear) any() string {
	e.t.Helper()
	select {
	case m := <-e.heard:
		return m
	case <-time.After(30 * time.Second):
		e.t.Fatal("nothing is heard")
		return ""
	}
}

// connected publishes until the ear hears it, and drops all messages heard so
// far.
func (e *ear) connected(from *Bus, topic string) {
	e.t.Helper()
	mark := "mark " + rand.Text()
	for tries := 0; ; tries++ {
		from.Publish(topic, []byte(mark))
		select {
		case m := <-e.heard:
			if m == mark {
				end := "end " + rand.Text()
				for from.Publish(topic, []byte(end)); e.next() != end; {
				}
				return
			}
		case <-time.After(20 * time.Millisecond):
			if tries > 1000 {
				e.t.Fatal("the nodes do not hear each other")
			}
		}
	}
}

func TestNodesHearEachOther(t *testing.T) {
	systems(t, func(t *testing.T, s system) {
		a, b, c := s.node(t), s.node(t), s.node(t)
		atB, atC, own := listen(t, b, "e.acme.1"), listen(t, c, "e.acme.1"), listen(t, a, "e.acme.1")
		other := listen(t, b, "e.acme.2")
		for _, e := range []*ear{atB, atC} {
			e.connected(a, "e.acme.1")
		}
		for i := range 1000 {
			a.Publish("e.acme.1", fmt.Appendf(nil, "message %d", i))
		}
		for _, e := range []*ear{atB, atC} {
			for i := range 1000 {
				m := e.next()
				for strings.HasPrefix(m, "mark ") || strings.HasPrefix(m, "end ") { // sent for the other ear
					m = e.next()
				}
				if want := fmt.Sprintf("message %d", i); m != want {
					t.Fatalf("%q where %q was due", m, want)
				}
			}
		}
		b.Publish("e.acme.1", []byte("back"))
		if m := own.next(); m != "back" {
			t.Errorf("a node hears its own message %q", m)
		}
		other.connected(a, "e.acme.2") // it heard nothing of the other topic before
		atB.stop()
		again := listen(t, b, "e.acme.1")
		again.connected(a, "e.acme.1")
	})
}

func TestNodesOfOtherDatabasesAreNotHeard(t *testing.T) {
	systems(t, func(t *testing.T, s system) {
		a, b := s.node(t), s.node(t)
		foreign := s.join(t, Options{Epoch: "two", Key: key})
		near := listen(t, b, "t.acme")
		near.connected(a, "t.acme")
		far := listen(t, foreign, "t.acme")
		for i := range 100 {
			foreign.Publish("t.acme", fmt.Append(nil, "from another database ", i))
			a.Publish("t.acme", fmt.Append(nil, "from here ", i))
		}
		for i := range 100 {
			if m := near.next(); m != fmt.Sprint("from here ", i) {
				t.Fatal(m)
			}
		}
		for len(far.heard) > 0 {
			if m := <-far.heard; m != "" {
				t.Fatal(m)
			}
		}
	})
}

func TestForgedMessagesAreDropped(t *testing.T) {
	systems(t, func(t *testing.T, s system) {
		a, b := s.node(t), s.node(t)
		thief := s.join(t, Options{Epoch: "one", Key: []byte("another key")})
		e := listen(t, b, "t.acme")
		e.connected(a, "t.acme")
		for _, raw := range []string{"plain", strings.Repeat("x", 100), "eA==" + strings.Repeat("A", 96)} {
			s.inject(t, "one", "t.acme", []byte(raw))
		}
		moved := newSealer(key).seal("t.other", nodeID{1}, kindMessage, []byte("of another topic"))
		s.inject(t, "one", "t.acme", moved)
		for b.Stats().Forged < 5 {
			thief.Publish("t.acme", []byte("believe me")) // again and again: it may not be connected yet
			a.Publish("t.acme", []byte("true"))
			if m := e.next(); m != "true" {
				t.Fatalf("a forged message is believed: %q", m)
			}
		}
		asked := make(chan struct{}, 1)
		defer b.Answer("b", func(context.Context, []byte) []byte { asked <- struct{}{}; return nil })()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := thief.Ask(ctx, "b", []byte("?")); parley.CodeOf(err) != parley.CodeUnavailable || len(asked) > 0 {
			t.Error("a node answers a forged question:", err)
		}
	})
}

func TestLargeMessagesAreWakeUps(t *testing.T) {
	systems(t, func(t *testing.T, s system) {
		a, b := s.node(t), s.node(t)
		e := listen(t, b, "t.acme")
		e.connected(a, "t.acme")
		a.Publish("t.acme", make([]byte, s.large-overhead+1))
		if m := e.any(); m != "" {
			t.Errorf("a message of %d bytes arrived", len(m))
		}
		a.Publish("t.acme", bytes.Repeat([]byte{'x'}, s.large-overhead))
		if m := e.any(); len(m) != s.large-overhead {
			t.Errorf("a message of %d bytes where the largest that is carried was due", len(m))
		}
	})
}

func TestAsking(t *testing.T) {
	systems(t, func(t *testing.T, s system) {
		a, b := s.node(t), s.node(t)
		stop := b.Answer("b", func(_ context.Context, m []byte) []byte {
			if string(m) == "large" {
				return make([]byte, s.large)
			}
			return append([]byte("you said "), m...)
		})
		ask := func(node, say string, wait time.Duration) (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			m, err := a.Ask(ctx, node, []byte(say))
			return string(m), err
		}
		for { // until the nodes hear each other
			if m, err := ask("b", "hello", 100*time.Millisecond); err == nil {
				if m != "you said hello" {
					t.Fatal(m)
				}
				break
			} else if parley.CodeOf(err) != parley.CodeUnavailable {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				say := fmt.Sprint("number ", i)
				if m, err := ask("b", say, 20*time.Second); err != nil || m != "you said "+say {
					t.Error(m, err)
				}
			})
		}
		wg.Wait()
		if m, err := ask("b", "", 20*time.Second); err != nil || m != "you said " {
			t.Errorf("an empty question: %q %v", m, err)
		}
		if _, err := ask("b", "large", 20*time.Second); parley.CodeOf(err) != parley.CodeUnavailable {
			t.Error("an answer that cannot be carried:", err)
		}
		if _, err := a.Ask(t.Context(), "b", make([]byte, s.large)); parley.CodeOf(err) != parley.CodeUnavailable {
			t.Error("a question that cannot be carried:", err)
		}
		stop()
		if _, err := ask("b", "still there?", 50*time.Millisecond); parley.CodeOf(err) != parley.CodeUnavailable {
			t.Error("a node that has stopped answers:", err)
		}
	})
}

func TestStopWaitsForAnswers(t *testing.T) {
	s := inMemory(Faults{})
	a, b := s.node(t), s.node(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	stop := b.Answer("b", func(context.Context, []byte) []byte {
		close(entered)
		<-leave
		return []byte("late, and still an answer")
	})
	answered := make(chan error, 1)
	go func() {
		_, err := a.Ask(context.Background(), "b", nil)
		answered <- err
	}()
	<-entered
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Error("stop does not wait")
	case <-time.After(20 * time.Millisecond):
	}
	close(leave)
	<-stopped
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// TestNATSSaysThatANodeIsNotThere checks that Ask fails without a timeout if no
// node subscribes to the subject, because the NATS server says so.
func TestNATSSaysThatANodeIsNotThere(t *testing.T) {
	s := onNATS(t)
	a := s.node(t)
	listen(t, s.node(t), "t.acme").connected(a, "t.acme")
	if _, err := a.Ask(t.Context(), "nobody", []byte("?")); parley.CodeOf(err) != parley.CodeUnavailable {
		t.Error(err)
	}
}

func TestNATSComesAndGoes(t *testing.T) {
	first := natsServer(t, -1)
	port := first.Addr().(*net.TCPAddr).Port
	first.Shutdown()
	first.WaitForShutdown()
	var said output
	o := Options{Epoch: "one", Key: key, Log: slog.New(slog.NewTextHandler(&said, nil))}
	address := fmt.Sprintf("nats://someone:hidden@127.0.0.1:%d", port)
	a, b := begin(t, must(NATS(address, o))), begin(t, must(NATS(address, o)))
	e := listen(t, b, "t.acme")
	login := func(o *server.Options) { o.Username, o.Password = "someone", "hidden" }
	for range 2 {
		up := natsServer(t, port, login)
		e.connected(a, "t.acme")
		up.Shutdown()
		up.WaitForShutdown()
		for range 10_000 { // more than all buffers have room for
			a.Publish("t.acme", []byte("nobody hears this"))
		}
	}
	refused := make(refusing, 100)
	wrong := natsServer(t, port, func(o *server.Options) { o.CustomClientAuthentication = refused })
	for range 8 { // more often than the library tolerates by default
		<-refused
	}
	wrong.Shutdown()
	wrong.WaitForShutdown()
	natsServer(t, port, login)
	e.connected(a, "t.acme")
	if text := said.String(); strings.Contains(text, "hidden") {
		t.Error("the log has the password:", text)
	} else if n := strings.Count(text, "cannot be reached"); n < 2 || n > 12 {
		t.Errorf("%d lines about an outage: %s", n, text)
	}
	if a.Stats().Lost == 0 {
		t.Error("no message was lost while the server was away")
	}
}

// refusing rejects every client, and signals each attempt.
type refusing chan struct{}

func (r refusing) Check(server.ClientAuthentication) bool {
	select {
	case r <- struct{}{}:
	default:
	}
	return false
}

func TestPostgresComesAndGoes(t *testing.T) {
	o := Options{Epoch: "one", Key: key}
	address := pgtest.Database(t)
	a, b := begin(t, must(Postgres(address, o))), begin(t, must(Postgres(address, o)))
	e := listen(t, b, "t.acme")
	e.connected(a, "t.acme")
	admin := must(pgx.Connect(t.Context(), address))
	defer admin.Close(context.Background())
	if _, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE application_name = 'parley bus' AND datname = current_database()`); err != nil {
		t.Fatal(err)
	}
	for e.any() != "" { // the listener is told that something may be missing
	}
	e.connected(a, "t.acme")
}

// TestTheQueueIsBounded checks that the queue of messages has a limit, and that
// Publish does not wait.
func TestTheQueueIsBounded(t *testing.T) {
	b := NewMemory(1, Faults{}).Join(Options{}) // not started: nothing is sent
	for range queueMessages + 10 {
		b.Publish("t.acme", nil)
	}
	if n := b.Stats().Lost; n != 10 {
		t.Errorf("%d messages were dropped where 10 have no room", n)
	}
	b = NewMemory(1, Faults{}).Join(Options{})
	for range 20 {
		b.Publish("t.acme", make([]byte, 1<<20-overhead))
	}
	if n := b.Stats().Lost; n != 20-queueBytes>>20 {
		t.Errorf("%d messages of 1 MB were dropped", n)
	}
}

// TestFaults checks that the in-process bus causes the faults it is told to.
func TestFaults(t *testing.T) {
	m := NewMemory(7, Faults{Lose: 0.2, Repeat: 0.2, Delay: 10 * time.Millisecond})
	s := system{join: func(t testing.TB, o Options) *Bus { return begin(t, m.Join(o)) }}
	a, b := s.node(t), s.node(t)
	e := listen(t, b, "t.acme")
	for i := range 1000 {
		a.Publish("t.acme", fmt.Append(nil, i))
	}
	for a.Stats().Sent < 1000 {
		time.Sleep(time.Millisecond)
	}
	m.Set(Faults{})
	time.Sleep(20 * time.Millisecond) // later than the latest
	a.Publish("t.acme", []byte("end"))
	seen, overtaken, repeated, last := map[int]bool{}, 0, 0, -1
	for text := e.next(); text != "end"; text = e.next() {
		i := must(strconv.Atoi(text))
		if seen[i] {
			repeated++
		}
		if i < last {
			overtaken++
		}
		seen[i], last = true, i
	}
	if lost := 1000 - len(seen); lost < 100 || lost > 300 || repeated < 80 || overtaken < 80 {
		t.Errorf("%d of 1000 messages were lost, %d came twice and %d late", lost, repeated, overtaken)
	}
	m.Cut(b, true)
	a.Publish("t.acme", []byte("unheard"))
	for a.Stats().Sent < 1002 {
		time.Sleep(time.Millisecond)
	}
	m.Cut(b, false)
	if got := e.any(); got != "" {
		t.Errorf("a node that was cut off hears %q", got)
	}
}

func TestAddressesAreChecked(t *testing.T) {
	for _, address := range []string{"", "localhost:4222", "http://h", "nats://u:se cret@h:4222", "nats://h,%zz"} {
		if _, err := NATS(address, Options{}); parley.CodeOf(err) != parley.CodeInvalid ||
			strings.Contains(err.Error(), "se cret") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := Postgres("postgres://u:secret@h:bad/x", Options{}); parley.CodeOf(err) != parley.CodeInvalid ||
		strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// output collects the text of a log.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
