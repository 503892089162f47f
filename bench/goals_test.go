package bench

import (
	"encoding/xml"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestVerdicts checks that a goal is met or missed only if the whole range of the
// repeats is on one side of it.
func TestVerdicts(t *testing.T) {
	low := goal{goal: 10, moonshot: 5}
	high := goal{goal: 10, moonshot: 20, higher: true}
	for _, test := range []struct {
		goal   goal
		values []float64
		want   verdict
	}{
		{low, []float64{9}, met},
		{low, []float64{6, 8, 10}, met},
		{low, []float64{6, 8, 11}, inconclusive},
		{low, []float64{11, 12}, notMet},
		{low, []float64{3, 4}, moon},
		{low, []float64{4, 6}, met},
		{high, []float64{9, 11}, inconclusive},
		{high, []float64{8, 9}, notMet},
		{high, []float64{11, 19}, met},
		{high, []float64{20, 30}, moon},
		{goal{goal: 10, moonshot: none}, []float64{1}, met},
	} {
		if got := judge(spreadOf(test.values), test.goal); got != test.want {
			t.Errorf("%v against %v: %s, not %s", test.values, test.goal.goal, got, test.want)
		}
	}
}

// TestCheck checks that ratios are computed within a repeat, and that inexact
// results have no figures.
func TestCheck(t *testing.T) {
	result := func(target string, repeat int, cost float64) *Result {
		return &Result{Scenario: "fan", Target: target, Repeat: repeat,
			Values: map[string]float64{"window1_cpu_us_per_delivery": cost}}
	}
	r := &Report{Results: []*Result{result("parley", 1, 8), result("gws", 1, 10), result("gws", 2, 100),
		result("parley", 2, 90)}}
	find := func(text string) Standing {
		list := r.Check()
		i := slices.IndexFunc(list, func(s Standing) bool { return s.Text == text })
		return list[max(i, 0)]
	}
	fan := "1: fan-out to 1,000, one event at a time, CPU per delivery ÷ gws"
	if s := find(fan); s.Value != "0.85 [0.8..0.9]" || s.Verdict != string(met) || s.Peers != "" {
		t.Errorf("%+v", s)
	}
	r.Results = append(r.Results, &Result{Scenario: "runs", Target: "opencode",
		Values: map[string]float64{"cpu_ms_per_run": 91}})
	if s := find("server CPU per run"); s.Value != "-" || s.Verdict != string(notMeasured) || s.Peers != "opencode 91.0" {
		t.Errorf("a figure that only a peer has: %+v", s)
	}
	r.Setup.Short = true
	if s := find(fan); s.Value != "0.85 [0.8..0.9]" || s.Verdict != string(inconclusive) || s.Remark != shortRun {
		t.Errorf("a figure of a short run: %+v", s)
	}
	if s := find("memory idle"); s.Verdict != string(notMeasured) || s.Remark != "" {
		t.Errorf("a figure that a short run did not measure: %+v", s)
	}
	r.Setup.Short = false
	r.Missing = []string{"gws: no compiler"}
	var checked strings.Builder
	if err := r.WriteCheck(&checked, false); err != nil || !strings.Contains(checked.String(), "opencode 91.0") ||
		!strings.HasSuffix(checked.String(), "missing peer: gws: no compiler\n") {
		t.Errorf("%v\n%s", err, checked.String())
	}
	slow := result("parley", 1, 20)
	slow.Busy = true
	r.Results[0], r.Results[3] = slow, result("parley", 2, 200)
	curve := "session list, ms by stored sessions"
	grows := &Result{Scenario: "list", Target: "parley", Curves: map[string][]Point{curve: {{1, 1}, {100, 100}}}}
	r.Results = append(r.Results, grows)
	if s := find("growth: " + curve); s.Verdict != string(notMet) {
		t.Errorf("%+v", s)
	}
	grows.Busy = true
	if s := find("growth: " + curve); s.Verdict != string(inconclusive) {
		t.Errorf("%+v", s)
	}
	if s := find(fan); s.Verdict != string(inconclusive) { // the machine may be the reason
		t.Errorf("%+v", s)
	}
	r.Results = append(r.Results, &Result{Scenario: "fan", Target: "parley", Repeat: 3, Problem: "token 1 came twice"})
	if s := find(fan); s.Verdict != string(failed) {
		t.Errorf("%+v", s)
	}
	if s := find("19: nothing lost, doubled or out of order, kill -9 included"); s.Verdict != string(notMet) {
		t.Errorf("%+v", s)
	}
}

// TestExponent checks the exponents of curves.
func TestExponent(t *testing.T) {
	for _, power := range []float64{0, 0.5, 1, 2} {
		var points []Point
		for _, x := range []float64{10, 100, 1000, 10_000} {
			points = append(points, Point{x, 3 * math.Pow(x, power)})
		}
		if got, ok := exponent(points); !ok || math.Abs(got-power) > 1e-9 {
			t.Errorf("power %v: %v", power, got)
		}
	}
	if _, ok := exponent([]Point{{10, 1}}); ok {
		t.Error("one point has no power")
	}
}

// TestAPlotWithoutPoints draws a curve whose figures are all zero.
func TestAPlotWithoutPoints(t *testing.T) {
	got := string(draw(map[string][]Point{"parley": {{100, 0}, {200, 0}}}))
	if err := xml.Unmarshal([]byte(got), new(struct{ XMLName xml.Name })); err != nil || !strings.HasPrefix(got, "<svg ") {
		t.Errorf("%v: %s", err, got)
	}
}
