package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A Report contains the results of one run of the bench.
type Report struct {
	Version string    `json:"version"`
	Began   time.Time `json:"began"`
	Machine Machine   `json:"machine"`
	Setup   Setup     `json:"setup"`
	Missing []string  `json:"missing_peers,omitempty"` // names with reasons
	Results []*Result `json:"results"`
}

// A Machine describes the machine of the measurement.
type Machine struct {
	CPUs   int    `json:"cpus"`
	Model  string `json:"model"`
	Kernel string `json:"kernel"`
	Memory string `json:"memory"`
	Go     string `json:"go"`
	Files  string `json:"nofile"` // the limit of open files
}

// A Setup contains the options of the measurement.
type Setup struct {
	Store     string  `json:"store"`
	Transport string  `json:"transport"`
	Repeat    int     `json:"repeat"`
	N         int     `json:"n,omitempty"`
	Rate      float64 `json:"rate,omitempty"`
	Short     bool    `json:"short,omitempty"`
	Server    string  `json:"server,omitempty"`
}

// parleyTarget is the name of Parley as a target. Other targets are peers.
const parleyTarget = "parley"

// A Result is the result of one scenario for one target in one repeat.
type Result struct {
	Scenario string             `json:"scenario"`
	Target   string             `json:"target"` // parley or a peer
	Repeat   int                `json:"repeat"`
	Values   map[string]float64 `json:"values,omitempty"`
	Curves   map[string][]Point `json:"curves,omitempty"`
	Problem  string             `json:"problem,omitempty"` // it failed or was not exact: there are no values
	Missing  string             `json:"missing,omitempty"` // why it was not measured
	Invalid  []string           `json:"invalid,omitempty"` // figures spoiled by a late load generator
	Raw      Raw                `json:"raw"`
	Seconds  float64            `json:"seconds"`
	Load     float64            `json:"load_average"`
	Foreign  float64            `json:"foreign_cpu"` // share of all processors used by other processes
	Steal    float64            `json:"steal"`
	Busy     bool               `json:"busy_machine,omitempty"`
}

// A Point is a point of a curve.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

func newReport(o Options, missing []string) *Report {
	return &Report{Version: o.Version, Began: time.Now().UTC().Truncate(time.Second), Machine: thisMachine(),
		Missing: missing, Setup: Setup{Store: o.Store, Transport: o.Transport, Repeat: max(o.Repeat, 1), N: o.N,
			Rate: o.Rate, Short: o.Short, Server: o.Server}}
}

func thisMachine() Machine {
	line := func(file, prefix string) string {
		raw, err := os.ReadFile(file)
		if err != nil {
			return "unknown"
		}
		for l := range strings.Lines(string(raw)) {
			if rest, ok := strings.CutPrefix(l, prefix); ok {
				return strings.TrimSpace(strings.TrimLeft(rest, "\t :"))
			}
		}
		return "unknown"
	}
	return Machine{CPUs: runtime.NumCPU(), Model: line("/proc/cpuinfo", "model name"),
		Kernel: line("/proc/sys/kernel/osrelease", ""), Memory: line("/proc/meminfo", "MemTotal"),
		Go:    runtime.Version(),
		Files: line("/proc/self/limits", "Max open files")}
}

// remark describes problems of a result in one line.
func (r *Result) remark() string {
	var s string
	switch {
	case r.Problem != "":
		s = ": FAILED: " + r.Problem
	case r.Missing != "":
		s = ": not measured: " + r.Missing
	}
	for _, why := range r.Invalid {
		s += "; invalid: " + why
	}
	if r.Busy {
		s += fmt.Sprintf("; busy machine (foreign processor %.0f %%, steal %.0f %%)", 100*r.Foreign, 100*r.Steal)
	}
	return s
}

// Problems lists scenarios that failed or were not exact.
func (r *Report) Problems() (list []string) {
	for _, x := range r.Results {
		if x.Problem != "" {
			list = append(list, fmt.Sprintf("%s, %s, repeat %d: %s", x.Scenario, x.Target, x.Repeat, x.Problem))
		}
	}
	return list
}

// WriteJSON writes the report to a file.
func (r *Report) WriteJSON(file string) error {
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(raw, '\n'), 0o644)
}

// ReadReport reads a file that WriteJSON wrote.
func ReadReport(file string) (*Report, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("%s is not a report of parley bench: %w", file, err)
	}
	if len(r.Results) == 0 {
		return nil, fmt.Errorf("%s has no results of parley bench; parley bench run --json FILE writes a report", file)
	}
	return r, nil
}

// A spread is the median of values with their range.
type spread struct {
	median, low, high float64
	n                 int
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	v := slices.Sorted(slices.Values(values))
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (v[len(v)/2-1] + mid) / 2
	}
	return spread{mid, v[0], v[len(v)-1], len(v)}
}

func (s spread) String() string {
	switch s.n {
	case 0:
		return "-"
	case 1:
		return number(s.median)
	}
	return number(s.median) + " [" + number(s.low) + ".." + number(s.high) + "]"
}

// number formats a number with three significant digits, or with all digits if it
// is large.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 10_000:
		return thousands(fmt.Sprintf("%.0f", v))
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// thousands puts commas between groups of three digits.
func thousands(s string) string {
	if strings.ContainsAny(s, ".e") {
		return s
	}
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// A scenarioTable contains the figures of a scenario, with a row for each figure
// and a column for each target.
type scenarioTable struct {
	scenario string
	targets  []string
	rows     []tableRow
	remarks  []string
}

type tableRow struct {
	name  string
	cells []spread
}

func (r *Report) tables() (list []scenarioTable) {
	var names []string
	for _, x := range r.Results {
		if !slices.Contains(names, x.Scenario) {
			names = append(names, x.Scenario)
		}
	}
	for _, name := range names {
		list = append(list, r.table(name))
	}
	return list
}

func (r *Report) table(scenario string) scenarioTable {
	t := scenarioTable{scenario: scenario}
	values := map[string]map[string][]float64{} // by name, by target
	var names []string
	for _, x := range r.Results {
		if x.Scenario != scenario {
			continue
		}
		if !slices.Contains(t.targets, x.Target) {
			t.targets = append(t.targets, x.Target)
		}
		if s := x.remark(); s != "" {
			t.remarks = append(t.remarks, fmt.Sprintf("%s, repeat %d%s", x.Target, x.Repeat, s))
		}
		for name, v := range x.Values {
			if values[name] == nil {
				values[name] = map[string][]float64{}
				names = append(names, name)
			}
			values[name][x.Target] = append(values[name][x.Target], v)
		}
	}
	slices.Sort(t.targets)
	if i := slices.Index(t.targets, parleyTarget); i > 0 { // Parley comes first
		t.targets = slices.Insert(slices.Delete(t.targets, i, i+1), 0, parleyTarget)
	}
	slices.Sort(names)
	for _, name := range names {
		row := tableRow{name: name}
		for _, target := range t.targets {
			row.cells = append(row.cells, spreadOf(values[name][target]))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// writeHeader writes what was measured, and where.
func (r *Report) writeHeader(w io.Writer) {
	m := r.Machine
	fmt.Fprintf(w, "parley %s, %s, %d processors (%s), Linux %s, store %s, transport %s, repeats %d\n", r.Version, m.Go,
		m.CPUs, m.Model, m.Kernel, r.Setup.Store, r.Setup.Transport, r.Repeats())
}

// Repeats returns how many repeats were measured, which are fewer than were asked for if the run was interrupted.
func (r *Report) Repeats() (n int) {
	for _, x := range r.Results {
		if len(x.Values) > 0 {
			n = max(n, x.Repeat)
		}
	}
	return n
}

// WriteTable writes the figures as tables.
func (r *Report) WriteTable(w io.Writer) error {
	r.writeHeader(w)
	var syncs, trips []float64
	for _, x := range r.Results {
		syncs, trips = append(syncs, x.Raw.SyncPerSecond), append(trips, x.Raw.TripP50)
	}
	fmt.Fprintf(w, "the machine alone: %s synced writes per second, loopback round trip %s µs\n", spreadOf(syncs),
		spreadOf(trips))
	for _, why := range r.Missing {
		fmt.Fprintf(w, "missing peer: %s\n", why)
	}
	for _, t := range r.tables() {
		fmt.Fprintf(w, "\n%s\n", t.scenario)
		tab := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		if len(t.targets) > 1 {
			fmt.Fprintf(tab, "  \t%s\n", strings.Join(t.targets, "\t"))
		}
		for _, row := range t.rows {
			fmt.Fprintf(tab, "  %s", row.name)
			for _, c := range row.cells {
				fmt.Fprintf(tab, "\t%s", c)
			}
			fmt.Fprintln(tab)
		}
		if err := tab.Flush(); err != nil {
			return err
		}
		for _, s := range t.remarks {
			fmt.Fprintf(w, "  ! %s\n", s)
		}
	}
	return nil
}
