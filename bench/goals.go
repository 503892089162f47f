package bench

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A goal is the target value of a figure. Figures are computed within one repeat,
// so that a ratio compares values that were measured at about the same time.
type goal struct {
	text     string
	scenario string
	unit     string
	higher   bool // higher values are better
	goal     float64
	moonshot float64 // NaN if there is none
	of       func(v view, target string) (float64, bool)
}

// A view contains the figures of one scenario in one repeat, by target.
type view map[string]map[string]float64

// A verdict is the result of comparing a figure with its goal.
type verdict string

const (
	met          verdict = "met"
	moon         verdict = "met, moonshot too"
	notMet       verdict = "not met"
	inconclusive verdict = "inconclusive"
	notMeasured  verdict = "not measured"
	failed       verdict = "failed"
)

// value returns a figure unchanged.
func value(name string) func(view, string) (float64, bool) {
	return func(v view, target string) (float64, bool) {
		x, ok := v[target][name]
		return x, ok
	}
}

// versus divides a figure of Parley by that of a peer in the same repeat.
func versus(name, peer string) func(view, string) (float64, bool) {
	return func(v view, target string) (float64, bool) {
		ours, ok := v[target][name]
		theirs, there := v[peer][name]
		return ours / theirs, target == parleyTarget && ok && there && theirs > 0
	}
}

// ratio divides two figures.
func ratio(a, b string) func(view, string) (float64, bool) {
	return func(v view, target string) (float64, bool) {
		x, ok := v[target][a]
		y, there := v[target][b]
		return x / y, ok && there && y > 0
	}
}

// difference subtracts two figures.
func difference(a, b string) func(view, string) (float64, bool) {
	return func(v view, target string) (float64, bool) {
		x, ok := v[target][a]
		y, there := v[target][b]
		return x - y, ok && there
	}
}

var none = math.NaN()

var goals = []goal{
	// Goals for the experience of people and agents.
	{"runs per second, 20-token answers, 50 at once", "runs", "/s", true, 1200, 2000, value("closed_loop_runs_per_s")},
	{"server CPU per run", "runs", "ms", false, 1.2, 0.5, value("cpu_ms_per_run")},
	{"first token added, one at a time, p50", "first", "ms", false, 2, 1.2, value("first_token_one_p50_ms")},
	{"first token added, one at a time, p99", "first", "ms", false, 8, 4, value("first_token_one_p99_ms")},
	{"first token added, 50 sessions, p50", "first", "ms", false, 10, 4, value("first_token_many_p50_ms")},
	{"first token added, 50 sessions, p99", "first", "ms", false, 30, 15, value("first_token_many_p99_ms")},
	{"added per token, one stream, p50", "stream", "ms", false, 2, 1, value("added_per_token_one_p50_ms")},
	{"added per token, one stream, p99", "stream", "ms", false, 6, 3, value("added_per_token_one_p99_ms")},
	{"added per token, 50 streams, p50", "stream", "ms", false, 4, 2, value("added_per_token_many_p50_ms")},
	{"added per token, 50 streams, p99", "stream", "ms", false, 15, 8, value("added_per_token_many_p99_ms")},
	{"200 followers: CPU per delivery", "followers", "µs", false, 6, 3, value("cpu_us_per_delivery")},
	{"200 followers: lag p99", "followers", "ms", false, 15, 8, value("lag_p99_ms")},
	{"memory idle", "memory", "MiB", false, 35, 25, value("idle_mb")},
	{"memory after 500 sessions with 4 runs", "memory", "MiB", false, 70, 50, value("after_sessions_mb")},
	{"memory per idle WebSocket, 5,000 open", "idle", "KB", false, 12, 5, value("kb_per_connection_at_5000")},
	{"start to first session", "cold", "ms", false, 60, 40, value("empty_first_session_ms")},
	{"SQLite: one writer ÷ raw fdatasync", "append", "x", true, 0.6, 0.75, value("one_writer_per_raw_sync")},
	{"SQLite: 256 writers ÷ one", "append", "x", true, 25, 40, value("256_writers_per_one")},

	// Goals for the planning of operators.
	{"1: fan-out to 1,000, one event at a time, CPU per delivery ÷ gws", "fan", "x", false, 1.0, 0.85,
		versus("window1_cpu_us_per_delivery", "gws")},
	{"2: the same under backlog ÷ Node ws", "fan", "x", false, 0.33, 0.1,
		versus("window32_cpu_us_per_delivery", "node-ws")},
	{"2: the same under backlog ÷ nats-server", "fan", "x", false, 1.5, none,
		versus("window32_cpu_us_per_delivery", "nats")},
	{"3: the same, deliveries per second ÷ Node ws", "fan", "x", true, 3, 10,
		versus("window32_closed_loop_deliveries_per_s", "node-ws")},
	{"4: 1,000 sessions with one viewer, durable, CPU ÷ Node ws, which stores nothing", "viewers", "x", false, 0.8, 0.5,
		versus("viewers_cpu_us_per_delivery", "node-ws")},
	{"5: memory per idle connection at 10,000", "idle", "KB", false, 16, 7, value("kb_per_connection_at_10000")},
	{"6: memory per idle session with 100 events, no connection", "sessions", "KB", false, 2, 0.5,
		value("kb_per_idle_session")},
	{"7: durable events, 256 writers ÷ one", "append", "x", true, 25, 50, value("256_writers_per_one")},
	{"8: durable events, one writer ÷ raw fdatasync", "append", "x", true, 0.6, 0.85, value("one_writer_per_raw_sync")},
	{"9: durable events, 256 writers ÷ PostgreSQL with 16 plain clients", "append", "x", true, 4, 10,
		ratio("events_per_s_256_writers", "postgres_16_plain_clients_per_s")},
	{"10: message to durable start, 1,000/s, p50 ÷ raw fdatasync p50", "start", "x", false, 3, none,
		value("started_p50_per_raw_sync_p50")},
	{"10: the same, p99", "start", "ms", false, 25, none, value("started_p99_ms")},
	{"10: the same, p99 ÷ raw fdatasync p99", "start", "x", false, none, 3, value("started_p99_per_raw_sync_p99")},
	{"11: added per token, 1,000 streams at 30/s, p50", "piece", "ms", false, 5, 2,
		value("added_per_token_piece_p50_ms")},
	{"11: the same, p99", "piece", "ms", false, 40, none, value("added_per_token_piece_p99_ms")},
	{"12: timer due to delivered, 1,000/s, p99", "timer", "ms", false, 50, 10, value("due_to_delivered_p99_ms")},
	{"13: effects per second, deduplicated and marked", "outbox", "/s", true, 5000, 20000, value("effects_per_s")},
	{"14: resume of 10,000 events, cold session", "resume", "/s", true, 200_000, 1_000_000,
		value("resume_10000_events_per_s")},
	{"15: last ten events of 100,000 ÷ of 100", "resume", "x", false, 2, 1.2, value("last_ten_long_per_short")},
	{"16: start to first session, empty", "cold", "ms", false, 100, 40, value("empty_first_session_ms")},
	{"16: the same, 10,000 sessions stored", "cold", "ms", false, 1000, 300, value("stored_first_session_ms")},
	{"17: memory idle, no connections", "memory", "MB", false, 40, 25, value("idle_mb")},
	{"18: memory per connection at 10,000 ÷ at 1,000", "idle", "x", false, 1.25, 1.1,
		ratio("kb_per_connection_at_10000", "kb_per_connection_at_1000")},
	{"18: CPU per delivery at 10,000 followers ÷ at 1,000", "fan-growth", "x", false, 1.25, 1.1,
		ratio("cpu_us_per_delivery_at_10000", "cpu_us_per_delivery_at_1000")},

	// Goals for several nodes.
	{"tokens on another node, with NATS, p99", "nodes", "ms", false, 50, 10, value("lag_nats_p99_ms")},
	{"tokens on another node, by PostgreSQL alone, p99", "nodes", "ms", false, 1000, 100, value("lag_postgres_p99_ms")},
	{"CPU per delivery on three nodes ÷ on one", "nodes", "x", false, 1.3, 1.1,
		ratio("cpu_us_per_delivery_3_nodes", "cpu_us_per_delivery_1_nodes")},
	{"a command passed on with NATS, added to its p50", "nodes", "ms", false, 3, 1,
		difference("command_nats_passed_on_p50_ms", "command_nats_holder_p50_ms")},

	// Goals for values that must not grow.
	{"memory per stalled reader", "slow", "KB", false, 64, none, value("kb_per_stalled_reader")},
	{"others' median beside stalled readers ÷ alone", "slow", "x", false, 1.25, none, value("others_p50_ratio")},
	{"peak memory of 400 messages of 1 MB at once", "inputs", "MB", false, 400, none, value("peak_mb")},
	{"turn start, 1,000 runs ÷ 10 runs", "conversation", "x", false, 2, none, value("turn_start_longest_per_shortest")},
	{"session list with 10,000 stored", "list", "ms", false, 5, none, value("session_list_p50_ms")},
	{"disk written per run", "runs", "KB", false, 100, none, value("disk_kb_per_run")},
	{"idle keep-alive connections after 130 s", "keepalive", "", false, 0, none, value("open_after_130s")},
}

// slopes are limits for the growth of curves: the exponent e of y = c·x^e.
var slopes = []struct {
	scenario, curve string
	most            float64
}{
	{"idle", "memory of idle connections, KB by number", 1.1},
	{"import", "import, s by chunks", 1.1},
	{"resume", "resume from the beginning, ms by events", 1.1},
	{"list", "session list, ms by stored sessions", 0.3},
	{"conversation", "first token of a message, ms by runs before it", 0.3},
	{"cold", "start to first session, ms by stored sessions", 0.5},
	{"fan-growth", "CPU per delivery, µs by followers", 0.1},
}

// exponent fits a straight line to the logarithms of the points.
func exponent(points []Point) (float64, bool) {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		if p.X <= 0 || p.Y <= 0 {
			continue
		}
		x, y := math.Log(p.X), math.Log(p.Y)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if n < 2 || n*sxx == sx*sx {
		return 0, false
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx), true
}

// A Standing is a goal with its measured value and verdict.
type Standing struct {
	Text           string
	Value          string
	Peers          string // medians of the peers
	Goal, Moonshot string
	Verdict        string
	Remark         string
}

// Class returns the CSS class of a verdict.
func (s Standing) Class() string {
	switch verdict(s.Verdict) {
	case met, moon:
		return "good"
	case notMet, failed:
		return "bad"
	}
	return ""
}

// shortRun is the remark on each figure of a run with --short.
const shortRun = "a short run: the figure means nothing"

// Check compares a report with all goals and slopes.
func (r *Report) Check() (list []Standing) {
	for _, g := range goals {
		list = append(list, r.stand(g))
	}
	for _, s := range slopes {
		list = append(list, r.slope(s.scenario, s.curve, s.most))
	}
	return append(list, r.exactness())
}

func (r *Report) stand(g goal) Standing {
	s := Standing{Text: g.text, Goal: bound(g.goal, g.higher, g.unit), Moonshot: bound(g.moonshot, g.higher, g.unit)}
	values := map[string][]float64{} // by target
	broken := false
	for _, v := range r.views(g.scenario) {
		for target := range v {
			if x, ok := g.of(v, target); ok {
				values[target] = append(values[target], x)
			}
		}
	}
	for _, x := range r.Results {
		if x.Scenario != g.scenario || x.Target != parleyTarget {
			continue
		}
		broken = broken || x.Problem != ""
		s.Remark = cmp.Or(s.Remark, x.doubt())
	}
	spread := spreadOf(values[parleyTarget])
	s.Value = spread.String()
	var peers []string
	for _, target := range slices.Sorted(maps.Keys(values)) {
		if target != parleyTarget {
			peers = append(peers, target+" "+number(spreadOf(values[target]).median))
		}
	}
	s.Peers = strings.Join(peers, ", ")
	switch {
	case broken:
		s.Verdict = string(failed)
	case len(values[parleyTarget]) == 0:
		s.Verdict = string(notMeasured)
	case r.Setup.Short:
		s.Verdict, s.Remark = string(inconclusive), shortRun
	default:
		s.Verdict = string(judge(spread, g))
	}
	return s.doubted()
}

// doubted makes a missed goal inconclusive if there is a remark: the machine may be the reason. A goal that is met
// needs no remark.
func (s Standing) doubted() Standing {
	switch {
	case s.Remark != "" && s.Verdict == string(notMet):
		s.Verdict = string(inconclusive)
	case s.Verdict != string(inconclusive):
		s.Remark = ""
	}
	return s
}

// doubt returns why a result may say more about the machine than about the server.
func (r *Result) doubt() string {
	switch {
	case r.Busy:
		return "other processes used the machine"
	case len(r.Invalid) > 0:
		return "the load generator was late"
	}
	return ""
}

// judge compares a figure with its goal. The verdict is inconclusive unless the
// whole range is on one side of it.
func judge(s spread, g goal) verdict {
	side := func(threshold float64) (all, some bool) {
		if g.higher {
			return s.low >= threshold, s.high >= threshold
		}
		return s.high <= threshold, s.low <= threshold
	}
	wanted := g.goal
	if math.IsNaN(wanted) {
		wanted = g.moonshot
	}
	all, some := side(wanted)
	switch {
	case !all && some:
		return inconclusive
	case !all:
		return notMet
	}
	if beyond, _ := side(g.moonshot); beyond {
		return moon
	}
	return met
}

func (r *Report) slope(scenario, curve string, most float64) Standing {
	s := Standing{Text: "growth: " + curve, Goal: fmt.Sprintf("exponent ≤ %g", most), Moonshot: "-",
		Verdict: string(notMeasured), Value: "-"}
	var values []float64
	for _, x := range r.Results {
		if x.Scenario == scenario && x.Target == parleyTarget {
			if e, ok := exponent(x.Curves[curve]); ok {
				values = append(values, e)
				s.Remark = cmp.Or(s.Remark, x.doubt())
			}
		}
	}
	if len(values) > 0 {
		spread := spreadOf(values)
		s.Value, s.Verdict = spread.String(), string(judge(spread, goal{goal: most, moonshot: none}))
		if r.Setup.Short {
			s.Verdict, s.Remark = string(inconclusive), shortRun
		}
	}
	return s.doubted()
}

// exactness is the goal that every result was exact.
func (r *Report) exactness() Standing {
	s := Standing{Text: "19: nothing lost, doubled or out of order, kill -9 included", Goal: "always", Moonshot: "-",
		Value:   fmt.Sprintf("%d of %d results exact", len(r.Results)-len(r.Problems()), len(r.Results)),
		Verdict: string(met)}
	crashed := slices.ContainsFunc(r.Results, func(x *Result) bool { return x.Scenario == "crash" && x.Values != nil })
	switch {
	case len(r.Problems()) > 0:
		s.Verdict = string(notMet)
	case !crashed:
		s.Verdict, s.Remark = string(notMeasured), "the scenario crash was not run"
	}
	return s
}

// views returns the figures of a scenario, by repeat.
func (r *Report) views(scenario string) map[int]view {
	views := map[int]view{}
	for _, x := range r.Results {
		if x.Scenario != scenario || len(x.Values) == 0 {
			continue
		}
		if views[x.Repeat] == nil {
			views[x.Repeat] = view{}
		}
		views[x.Repeat][x.Target] = x.Values
	}
	return views
}

func bound(v float64, higher bool, unit string) string {
	if math.IsNaN(v) {
		return "-"
	}
	sign := "≤"
	if higher {
		sign = "≥"
	}
	if unit == "x" {
		return fmt.Sprintf("%s %gx", sign, v)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", sign, thousands(strconv.FormatFloat(v, 'f', -1, 64)), unit))
}

// WriteCheck writes the comparison of a report with the goals as a table. Without all, it leaves out the goals that were
// not measured.
func (r *Report) WriteCheck(w io.Writer, all bool) error {
	r.writeHeader(w)
	fmt.Fprintln(w)
	tab := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tab, "figure\tmeasured\tgoal\tmoonshot\tverdict\tpeers, median\t")
	left := 0
	for _, s := range r.Check() {
		if s.Verdict == string(notMeasured) && s.Value == "-" && s.Peers == "" && !all {
			left++
			continue
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Text, s.Value, s.Goal, s.Moonshot, s.Verdict, s.Peers,
			s.Remark)
	}
	err := tab.Flush()
	if left > 0 {
		fmt.Fprintf(w, "%d goals were not measured; --all lists them\n", left)
	}
	for _, why := range r.Missing {
		fmt.Fprintf(w, "missing peer: %s\n", why)
	}
	return err
}
