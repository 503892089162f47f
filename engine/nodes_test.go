package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/access"
	"parley/pacing"
	"parley/port"
	"parley/store/postgres"
	"parley/store/postgres/pgtest"
)

// A cluster has several nodes on one database.
type cluster struct {
	t     testing.TB
	url   string
	bus   port.Bus // nil: they communicate through the database only
	lease time.Duration
	roles map[*rig]string
}

func newCluster(t testing.TB, bus port.Bus) *cluster {
	c := &cluster{t: t, url: pgtest.Database(t), bus: bus, lease: 10 * time.Second, roles: map[*rig]string{}}
	if _, _, err := postgres.Migrate(context.Background(), c.url); err != nil {
		t.Fatal(err)
	}
	return c
}

// node starts another node, which connects with a database role of its own.
func (c *cluster) node(change ...func(*Config)) *rig {
	c.t.Helper()
	role, url := pgtest.Role(c.t, c.url, "")
	if err := postgres.Grant(context.Background(), c.url, role); err != nil {
		c.t.Fatal(err)
	}
	r := &rig{t: c.t, reopen: func() port.Store {
		store, err := postgres.Open(context.Background(), url, postgres.WithLease(c.lease), postgres.WithConnections(4))
		if err != nil {
			c.t.Fatal(err)
		}
		return store
	}}
	c.roles[r] = role
	r.config = Config{Access: access.Rules{}, Project: Project{Agents: agents{}}, Log: slog.New(slog.DiscardHandler),
		Now: time.Now, Bus: c.bus, NodeKey: []byte("shared"), Retry: 50 * time.Millisecond}
	for _, f := range change {
		f(&r.config)
	}
	r.start()
	c.t.Cleanup(func() { r.stop(true) })
	return r
}

func (c *cluster) exec(statement string, args ...any) {
	c.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.url)
	if err == nil {
		_, err = conn.Exec(ctx, statement, args...)
		_ = conn.Close(ctx)
	}
	if err != nil {
		c.t.Fatalf("%s: %v", statement, err)
	}
}

// list returns the first column of the answer to a query.
func (c *cluster) list(query string) []string {
	c.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, query)
	if err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
	return list
}

// cutOff cuts a node off from the database and the bus, as if its process or
// its network were gone. Its lease ends at once.
func (c *cluster) cutOff(r *rig) {
	c.t.Helper()
	c.exec(`ALTER ROLE ` + c.roles[r] + ` NOLOGIN`)
	c.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1`, c.roles[r])
	if bus, ok := c.bus.(*lossyBus); ok {
		bus.Answer(r.Nodes.Node(), nil)
	}
	c.exec(`UPDATE nodes SET seen_at = 'epoch' WHERE id = $1`, r.Nodes.Node())
	c.t.Cleanup(func() { c.exec(`ALTER ROLE ` + c.roles[r] + ` LOGIN`) })
}

// know waits until each of these nodes knows exactly the others.
func (c *cluster) know(nodes ...*rig) {
	c.t.Helper()
	for _, r := range nodes {
		var want []string
		for _, other := range nodes {
			if other != r {
				want = append(want, other.Nodes.Node())
			}
		}
		slices.Sort(want)
		await(c.t, "a node knows the others", func() bool {
			var got []string
			for _, n := range r.others() {
				got = append(got, n.ID)
			}
			return slices.Equal(got, want) && len(r.Nodes.Others()) == len(want)
		})
	}
}

// await waits until a condition holds.
func await(t testing.TB, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !so() {
		if !pacing.Sleep(ctx, time.Millisecond) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// TestNonServingProcessTakesNoSessions checks that sessions are not handed over to a process that only uses the
// database: a command, or a server that is still starting.
func TestNonServingProcessTakesNoSessions(t *testing.T) {
	c := newCluster(t, nil)
	a := c.node()
	idle := a.reopen()
	defer idle.Close()
	await(t, "the node knows the process", func() bool { return len(a.Nodes.Others()) == 1 })
	if list := a.others(); len(list) > 0 || !a.hasOtherNodes() {
		t.Errorf("sessions may go to %+v", list)
	}
	b := c.node()
	await(t, "the node knows one that serves", func() bool { return len(a.others()) == 1 })
	if got := a.nodesServing(""); len(got) != 1 || got[0] != b.Nodes.Node() {
		t.Errorf("sessions may go to %q", got)
	}
}

// TestACommandFindsItsSession checks that the node that has a session carries
// out commands that other nodes get, over the bus and without one.
func TestACommandFindsItsSession(t *testing.T) {
	for name, bus := range map[string]*lossyBus{"over the bus": newBus(1), "by the database alone": nil} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, nil)
			if bus != nil {
				c.bus = bus
			}
			a, b := c.node(), c.node()
			id := a.open()
			a.say(id, "say one; hang")
			a.until(id, "it speaks", seen[parley.OutputAppended](1))
			before := a.epoch(id)
			receipt := b.do(id, parley.RenameSession{Title: "from the other node"})
			if receipt.Command != "" || receipt.Repeated || receipt.First == 0 || receipt.Session != id {
				t.Errorf("the receipt is %+v", receipt)
			}
			b.do(id, parley.CancelRun{})
			log := a.until(id, "the run has ended", seen[parley.RunFinished](1))
			if end := all[parley.RunFinished](log)[0]; end.Outcome != parley.Cancelled {
				t.Errorf("the run ended %+v", end)
			}
			if a.epoch(id) != before || b.puppet.called() > 0 || b.loaded() > 0 {
				t.Errorf("the session was taken from a living node: epoch %d, was %d", a.epoch(id), before)
			}
			// A refusal keeps its message.
			_, here := a.try(id, parley.DecideApproval{Card: 1, Decision: parley.AllowOnce})
			_, there := b.try(id, parley.DecideApproval{Card: 1, Decision: parley.AllowOnce})
			if here == nil || there == nil || parley.CodeOf(here) != parley.CodeOf(there) ||
				parley.MessageOf(here) != parley.MessageOf(there) {
				t.Errorf("refused with %v here, and with %v through another node", here, there)
			}
			a.check(id)
		})
	}
}

func (r *rig) epoch(id parley.SessionID) int64 {
	r.t.Helper()
	st, err := r.Store.Tenant(acme).Session(context.Background(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return st.Epoch
}

// TestOneEffectOnALossyBus checks that each command has one effect although
// requests and answers are lost, repeated and late.
func TestOneEffectOnALossyBus(t *testing.T) {
	bus := newBus(7)
	bus.loses, bus.repeats, bus.delay = 0.4, 0.4, 5*time.Millisecond
	c := newCluster(t, bus)
	a, b := c.node(), c.node()
	c.know(a, b)
	id := a.open()
	a.say(id, "say one; hang")
	a.until(id, "it speaks", seen[parley.OutputAppended](1))
	const inputs = 20
	var wg sync.WaitGroup
	for i := range inputs {
		wg.Go(func() {
			if _, err := b.try(id, parley.SubmitInput{Content: "say x", Request: fmt.Sprint("r", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	count := map[string]int{}
	for _, in := range all[parley.InputReceived](a.log(id)) {
		count[in.Request]++
	}
	for i := range inputs {
		if n := count[fmt.Sprint("r", i)]; n != 1 {
			t.Errorf("input %d is there %d times", i, n)
		}
	}
	a.do(id, parley.CancelRun{})
	a.finished(id, 1+inputs)
	a.check(id)
}

// TestALetterOutlivesItsNode checks that a command that waits for a node that dies is found by the node that takes the
// session, even if no other node is left.
func TestALetterOutlivesItsNode(t *testing.T) {
	c := newCluster(t, nil)
	reads := make(chan struct{}, 1)
	stuck := make(chan struct{})
	a := c.node(func(c *Config) {
		c.Store = &rough{append: func(b port.Batch) error {
			if b.Letter == "" {
				return nil
			}
			reads <- struct{}{} // the letter was read, and nothing is committed
			<-stuck
			return errors.New("dead")
		}}
	})
	known := &gated{}
	b := c.node(func(c *Config) { c.Nodes = known })
	c.know(a, b)
	id := a.open()
	answered := make(chan error, 1)
	go func() {
		_, err := b.try(id, parley.RenameSession{Title: "at last"})
		answered <- err
	}()
	<-reads
	known.alone.Store(true)
	c.cutOff(a)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	close(stuck)
	if n := len(all[parley.SessionRenamed](b.log(id))); n != 1 {
		t.Errorf("renamed %d times", n)
	}
	if b.epoch(id) != 2 {
		t.Errorf("the session has epoch %d", b.epoch(id))
	}
}

// TestUnsealedMessagesAreIgnored checks that a message that was not sealed with
// the shared key is ignored, and so is an answer to another request.
func TestUnsealedMessagesAreIgnored(t *testing.T) {
	bus := newBus(1)
	c := newCluster(t, bus)
	a := c.node()
	id := a.open()
	k := key{acme, id}
	forged := func(with sealer, of messageID, k key) []byte {
		r := &request{who: ann, command: parley.Command{Do: parley.DeleteSession{}, By: ann.ID, At: time.Now()}}
		raw, _ := json.Marshal(envelope{k.tenant, k.session, "c1", with.seal(of, newForwarded(r))})
		return raw
	}
	own, other := newSealer([]byte("shared")), newSealer([]byte("stolen elsewhere"))
	for what, message := range map[string][]byte{
		"no JSON":         []byte("{"),
		"another key":     forged(other, messageID{key: k, command: "c1"}, k),
		"another session": forged(own, messageID{key: key{acme, "x"}, command: "c1"}, k),
		"another command": forged(own, messageID{key: k, command: "c2"}, k),
		"an answer":       forged(own, messageID{key: k, command: "c1", answer: true}, k),
	} {
		if got := a.answerBusRequest(context.Background(), message); got != nil {
			t.Errorf("%s is answered", what)
		}
	}
	if got := a.answerBusRequest(context.Background(), forged(own, messageID{key: k, command: "c1"}, k)); got == nil {
		t.Error("a node is not answered")
	}
}

// TestAStoppingNodeTakesPassedInputs checks that a stopping node keeps the session until its answer has come to a
// boundary, and accepts an input that another node passes on. The other node goes on with it, even if the stopping node
// has not heard of it yet.
func TestAStoppingNodeTakesPassedInputs(t *testing.T) {
	c := newCluster(t, nil)
	a := c.node()
	id := a.open()
	a.say(id, "say one; hang")
	a.until(id, "it speaks", seen[parley.OutputAppended](1))
	a.Drain()
	of := messageID{key: key{acme, id}, command: "c1"}
	body := a.sealer.seal(of, newForwarded(&request{who: ann, command: parley.Command{By: ann.ID, At: time.Now(),
		Do: parley.SubmitInput{Content: "say two"}}}))
	if got, ok := a.answerRequest(context.Background(), of, body, ""); !ok || got.Receipt == nil {
		t.Errorf("an input that another node passes on is answered with %+v", got)
	}
}

// TestEveryCommandCanBePassedOn checks that every command is the same after it was passed to another node.
func TestEveryCommandCanBePassedOn(t *testing.T) {
	for name, typ := range commandTypes {
		v := reflect.New(typ).Elem()
		fill(v, 1)
		do := v.Interface().(parley.CommandBody)
		r := &request{who: ann, internal: true, command: parley.Command{By: ann.ID, At: time.Now(), Via: "x", Do: do}}
		raw, _ := json.Marshal(newForwarded(r))
		var p forwarded
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		got, err := p.request(messageID{key: key{acme, "s"}, command: "c"})
		if err != nil || !reflect.DeepEqual(got.command.Do, do) || digest(got.command.Do) != digest(do) {
			t.Errorf("%s becomes\n%+v, was\n%+v, %v", name, got.command.Do, do, err)
		}
	}
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`func \((?:do )?(\w+)\) Rules\(\) Rules`).FindAllSubmatch(raw, -1) {
			if commandTypes[string(m[1])] == nil {
				t.Errorf("%s cannot be passed on", m[1])
			}
		}
	}
}

// fill sets everything in v to a value that is not zero.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", depth))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(depth) + 6)
	case reflect.Uint, reflect.Uint64, reflect.Uint8:
		v.SetUint(uint64(depth))
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		if depth < 6 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"a":1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), depth+1)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth+1)
			}
		}
	}
}
