package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// Scenarios for reading: resuming, lists, long conversations, imports.

// A reading follows a session's log up to a seq. It checks that every event comes
// once and in order.
type reading struct {
	tally tally
	done  chan struct{}
	last  int64 // time of the last event
	err   error
	conn  *conn
}

// reader connects a reading of a log up to head. ask sends its request.
func (t *trial) reader(after, head int64) (*reading, error) {
	r := &reading{tally: tally{seq: after}, done: make(chan struct{})}
	c, err := t.loop.dial(t.server.address, "", 0)
	if err != nil {
		return nil, err
	}
	r.conn = c
	finished := false
	finish := func() {
		if !finished {
			finished = true
			close(r.done)
		}
	}
	c.feed = func(b []byte) ([]byte, error) { return c.afterHead(b, 200, c.chunks) }
	c.message = func(now int64, id, _ []byte) {
		if r.tally.sequence(seqOf(id)); r.tally.seq >= head || r.tally.err != nil {
			r.last = now
			finish()
		}
	}
	c.lost = func(err error) { r.err = err; finish() }
	return r, c.listen()
}

// ask requests the events after a seq as server-sent events.
func (r *reading) ask(t *trial, id string, after int64) error {
	path := "/api/v1/sessions/" + id + "/log"
	if after > 0 {
		path += fmt.Sprint("?after=", after)
	}
	return r.conn.write([]byte(t.request("GET", path, "Accept: text/event-stream\r\n", "")))
}

// wait waits until the whole log has arrived, and returns the first error.
func (r *reading) wait(ctx context.Context) error {
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.tally.err != nil {
		return r.tally.err
	}
	return r.err
}

// readAll reads a log and returns the duration, including the time to connect.
func (t *trial) readAll(id string, after, head int64) (time.Duration, error) {
	from := clock()
	r, err := t.reader(after, head)
	if err != nil {
		return 0, err
	}
	if err := r.ask(t, id, after); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(t.ctx, time.Minute)
	defer cancel()
	err = r.wait(ctx)
	took := time.Duration(r.last - from)
	r.conn.hangUp()
	return took, err
}

// head returns the seq of the last event of a session.
func (t *trial) head(id string) (int64, error) {
	var s struct{ Head int64 }
	err := t.get("/api/v1/sessions/"+id, &s)
	return s.Head, err
}

// plotOf describes a session with about this many events, in answers of at most 490
// chunks.
func plotOf(events int) plot {
	runs := max(events/500, 1)
	return plot{id: newID(), runs: runs, chunks: max(events/runs-9, 1), size: 60}
}

// runResume measures cold reads of whole logs with 10 to 100,000 events. It also
// measures the last ten events of a short and of a long log, and many clients that
// resume at once.
func runResume(t *trial) error {
	sizes := []int{10, 100, 1000, 10_000, 100_000}
	if t.o.Short {
		sizes = []int{10, 100, 1000}
	}
	plots := make([]plot, len(sizes))
	for i, n := range sizes {
		plots[i] = plotOf(n)
	}
	if err := t.startSeeded(plots); err != nil {
		return err
	}
	heads := make([]int64, len(plots))
	for i, p := range plots {
		var err error
		if heads[i], err = t.head(p.id); err != nil {
			return err
		}
		took, err := t.readAll(p.id, 0, heads[i])
		if err != nil {
			return err
		}
		t.point("resume from the beginning, ms by events", float64(heads[i]), took.Seconds()*1e3)
		if sizes[i] >= 1000 {
			t.record(fmt.Sprintf("resume_%d_events_per_s", sizes[i]), float64(heads[i])/took.Seconds())
		}
	}
	if err := t.lastTen(plots[1].id, heads[1], plots[len(plots)-1].id, heads[len(plots)-1]); err != nil {
		return err
	}
	at := slices.Index(sizes, t.pick(10_000, 1000))
	return t.storm(plots[at].id, heads[at])
}

// lastTen measures the last ten events, alternating between a short and a long log.
func (t *trial) lastTen(short string, shortHead int64, long string, longHead int64) error {
	var times [2]*histogram
	for i := range times {
		times[i] = &histogram{}
	}
	for range t.pick(100, 3) {
		for i, s := range []struct {
			id   string
			head int64
		}{{short, shortHead}, {long, longHead}} {
			took, err := t.readAll(s.id, s.head-10, s.head)
			if err != nil {
				return err
			}
			times[i].record(int64(took))
		}
	}
	t.record("last_ten_short_ms", times[0].ms(0.5))
	t.record("last_ten_long_ms", times[1].ms(0.5))
	t.record("last_ten_long_per_short", times[1].ms(0.5)/times[0].ms(0.5))
	return nil
}

// storm measures clients that resume at once, each a hundred events behind.
// They are connected before the clock starts.
func (t *trial) storm(id string, head int64) error {
	n, h := t.size(1000, 20), &histogram{}
	list := make([]*reading, n)
	defer func() {
		for _, r := range list {
			if r != nil {
				r.conn.hangUp()
			}
		}
	}()
	if err := together(n, 32, func(i int) (err error) {
		list[i], err = t.reader(head-100, head)
		return err
	}); err != nil {
		return err
	}
	from := clock()
	for _, r := range list {
		if err := r.ask(t, id, head-100); err != nil {
			return err
		}
	}
	for _, r := range list {
		if err := r.wait(t.ctx); err != nil {
			return err
		}
		h.record(r.last - from)
	}
	t.record("storm_all_back_ms", h.ms(1))
	t.record("storm_p50_ms", h.ms(0.5))
	return nil
}

// runList measures the list of sessions with 100 to 10,000 stored sessions.
func runList(t *trial) error {
	for _, n := range []int{t.pick(100, 5), t.pick(1000, 10), t.size(10_000, 50)} {
		if err := t.listOf(n); err != nil {
			return err
		}
		t.stopServers()
		if err := t.fresh(); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) listOf(n int) error {
	plots := make([]plot, n)
	for i := range plots {
		plots[i] = plot{id: newID(), runs: 1, chunks: 2, size: 30}
	}
	if err := t.startSeeded(plots); err != nil {
		return err
	}
	h := &histogram{}
	for range t.pick(50, 3) {
		from := clock()
		if err := t.hasSessions(min(n, 200)); err != nil {
			return err
		}
		h.record(clock() - from)
	}
	t.record("session_list_p50_ms", h.ms(0.5)) // the last, largest number counts
	t.point("session list, ms by stored sessions", float64(n), h.ms(0.5))
	return nil
}

// runConversation measures the first token of a message in conversations of 10
// to 1,000 runs.
func runConversation(t *trial) error {
	lengths := []int{10, 100, t.size(1000, 120)}
	plots := make([]plot, len(lengths))
	for i, n := range lengths {
		plots[i] = plot{id: newID(), runs: n, chunks: 2, size: 100}
	}
	if err := t.startSeeded(plots); err != nil {
		return err
	}
	var shortest float64
	for i, p := range plots {
		cold, warm, err := t.turns(p.id)
		if err != nil {
			return err
		}
		t.point("first token of a message, ms by runs before it", float64(lengths[i]), warm)
		t.point("the same in a session that was not loaded", float64(lengths[i]), cold)
		if i == 0 {
			shortest = warm
		}
		t.record("turn_start_ms", warm)
		t.record("turn_start_cold_ms", cold)
		t.record("turn_start_longest_per_shortest", warm/shortest)
	}
	return nil
}

// turns sends messages one after another. It returns the time to the first token:
// for the first message, and the median for the others.
func (t *trial) turns(id string) (cold, warm float64, err error) {
	h, due := &histogram{}, int64(0)
	c := &client{t: t, id: id}
	if err := c.connect(func(now int64, _ *answer, index int, _ int64) {
		if index == 0 {
			h.record(now - due)
		}
	}, ""); err != nil {
		return 0, 0, err
	}
	defer c.close()
	for i := range t.pick(11, 3) {
		a := t.model.add(answer{tokens: 2})
		due = clock()
		if err := c.ask(a); err != nil {
			return 0, 0, err
		}
		if err := t.waitAll([]*client{c}, time.Minute); err != nil {
			return 0, 0, err
		}
		if i == 0 {
			cold = h.ms(0.5)
			*h = histogram{}
		}
	}
	return cold, h.ms(0.5), nil
}

// runImport measures parley import of sessions with 1,000 to 100,000 chunks.
func runImport(t *trial) error {
	for _, chunks := range []int{t.pick(1000, 50), t.pick(10_000, 100), t.size(100_000, 200)} {
		took, err := t.importOf(chunks)
		if err != nil {
			return err
		}
		t.record("import_s", took.Seconds()) // the last, largest number counts
		t.record("import_us_per_chunk", micros(took)/float64(chunks))
		t.point("import, s by chunks", float64(chunks), took.Seconds())
	}
	return nil
}

// importOf exports a seeded session and measures its import into a new folder.
func (t *trial) importOf(chunks int) (time.Duration, error) {
	from, err := t.dir()
	if err != nil {
		return 0, err
	}
	to, err := t.dir()
	if err != nil {
		return 0, err
	}
	p := plot{id: newID(), runs: 10, chunks: chunks / 10, size: 30}
	if err := t.seeded(from, []plot{p}); err != nil {
		return 0, err
	}
	file := filepath.Join(from, "session.jsonl")
	if err := t.parley("export", "--data", from, "--output", file, p.id); err != nil {
		return 0, err
	}
	if err := t.fresh(); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := t.parley("import", "--data", to, file); err != nil {
		return 0, err
	}
	took := time.Since(began)
	again := filepath.Join(to, "again.jsonl")
	if err := t.parley("export", "--data", to, "--output", again, p.id); err != nil {
		return 0, err
	}
	return took, sameLog(file, again)
}

// parley runs a command of the program parley.
func (t *trial) parley(args ...string) error {
	cmd := exec.CommandContext(t.ctx, t.o.Program, args...)
	cmd.Env, cmd.Dir = t.childEnv(t.temp), t.temp
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("parley %s: %w: %.300s", args[0], err, out)
	}
	return nil
}

// sameLog compares two exports of a session: the number of lines, and the body of
// each event.
func sameLog(a, b string) error {
	left, err := os.ReadFile(a)
	if err != nil {
		return err
	}
	right, err := os.ReadFile(b)
	if err != nil {
		return err
	}
	lines := func(raw []byte) [][]byte { return bytes.Split(bytes.TrimSpace(raw), []byte("\n")) }
	l, r := lines(left), lines(right)
	if len(l) != len(r) {
		return fmt.Errorf("%d lines were imported and %d come back", len(l), len(r))
	}
	for i := range l {
		at := []byte(`"body":`)
		x, y := bytes.Index(l[i], at), bytes.Index(r[i], at)
		if x < 0 && y < 0 {
			continue // the header contains the epoch of its store
		}
		if x < 0 || y < 0 || !bytes.Equal(l[i][x:], r[i][y:]) {
			return errors.New("an imported session is not the one that was exported")
		}
	}
	return nil
}
