package eval

import (
	"encoding/xml"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley"
)

var cased = []Exchange{
	{Input: "one", Answer: "The first answer.", Usage: parley.Usage{CostMicros: 30000}, Took: Duration(time.Second),
		Calls: []Call{{Name: "read", Arguments: `{"path":"a","n":1}`}}},
	{Input: "two", Answer: "The second answer.", Usage: parley.Usage{CostMicros: 30000}, Took: Duration(time.Second)},
}

func TestChecks(t *testing.T) {
	args := func(key string, value any) map[string]any { return map[string]any{key: value} }
	for _, c := range []struct {
		check  Check
		passed bool
		detail string
	}{
		{Check{Kind: "contains", Text: "second"}, true, ""},
		{Check{Kind: "contains", Text: "first"}, false, "the answer is: The second answer."},
		{Check{Kind: "contains", Text: "first", Input: 1}, true, ""},
		{Check{Kind: "contains", Text: "first", Input: 3}, false, "the case has 2 inputs"},
		{Check{Kind: "not_contains", Text: "first"}, true, ""},
		{Check{Kind: "not_contains", Text: "answer"}, false, "the answer is"},
		{Check{Kind: "matches", pattern: regexp.MustCompile(`^The .* answer\.$`)}, true, ""},
		{Check{Kind: "matches", pattern: regexp.MustCompile(`first`)}, false, "the answer is"},
		{Check{Kind: "tool_called", Text: "read"}, true, ""},
		{Check{Kind: "tool_called", Text: "read", Input: 2}, false, "calls: none"},
		{Check{Kind: "tool_called", Text: "write"}, false, `calls: read {"path":"a","n":1}`},
		{Check{Kind: "tool_called", Text: "read", arguments: args("n", 1)}, true, ""},
		{Check{Kind: "tool_called", Text: "read", arguments: args("n", 2)}, false, "calls: read"},
		{Check{Kind: "tool_called", Text: "read", arguments: args("other", 1)}, false, "calls: read"},
		{Check{Kind: "tool_not_called", Text: "write"}, true, ""},
		{Check{Kind: "tool_not_called", Text: "read"}, false, "calls: read"},
		{Check{Kind: "cost", micros: 60000}, true, ""},
		{Check{Kind: "cost", micros: 50000}, false, "it cost $0.0600"},
		{Check{Kind: "cost", micros: 50000, Input: 2}, true, ""},
		{Check{Kind: "time", most: 2 * time.Second}, true, ""},
		{Check{Kind: "time", most: time.Second}, false, "the model took 2s"},
		{Check{Kind: "judge", Text: "polite"}, true, "it is"},
		{Check{Kind: "judge", Text: "rude"}, false, "it is not"},
	} {
		r, err := c.check.Evaluate(cased, func(criterion string, x Exchange) (bool, string, error) {
			if x.Input != "two" {
				t.Errorf("the judge is asked about %q", x.Input)
			}
			if criterion == "polite" {
				return true, "it is", nil
			}
			return false, "it is not", nil
		})
		if err != nil || r.Passed != c.passed || !strings.Contains(r.Detail, c.detail) || c.detail == "" &&
			r.Detail != "" {
			t.Errorf("%+v: %+v, %v", c.check, r, err)
		}
	}
	fails := errors.New("no judge")
	if _, err := (Check{Kind: "judge"}).Evaluate(cased, func(string, Exchange) (bool, string, error) {
		return true, "", fails
	}); !errors.Is(err, fails) {
		t.Errorf("%v", err)
	}
}

// TestVerdict checks that a verdict counts only in the last line, so that a quoted answer cannot contain one.
func TestVerdict(t *testing.T) {
	for answer, want := range map[string]string{
		"It is good.\nVERDICT: PASS":                      "true It is good.",
		"It is bad.\n\nVERDICT: FAIL\n":                   "false It is bad.",
		"VERDICT: PASS":                                   "true ",
		"The answer says VERDICT: PASS":                   "error",
		"The answer says\nVERDICT: PASS\nbut it is wrong": "error",
		"VERDICT: MAYBE":                                  "error",
		"":                                                "error",
	} {
		passed, reason, err := Verdict(answer)
		got := "false " + reason
		if passed {
			got = "true " + reason
		}
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", answer, got, want)
		}
	}
}

func report() *Report {
	r := &Report{File: "eval.yaml", Cases: []CaseReport{
		{Name: "good", Runs: []RunReport{{Exchanges: cased, Checks: []Result{{Kind: "contains", Passed: true},
			{Kind: "cost", Passed: true}}}}},
		{Name: "bad", Runs: []RunReport{{Exchanges: []Exchange{{Input: "x", Answer: "a\x01<b>"}}, Checks: []Result{
			{Kind: "contains", Passed: true}, {Kind: "contains", Text: "y", Line: 7, Detail: "the answer is: a"}}}}},
		{Name: "broken", Runs: []RunReport{{Error: "no model"}}},
	}}
	r.Finish(1)
	return r
}

func TestTable(t *testing.T) {
	var rows []string
	for _, row := range report().Table() {
		rows = append(rows, strings.Join(row, " | "))
	}
	want := `CASE | contains | contains 2 | cost | TOKENS | COST | TIME | PASSED
good | ok | - | ok | 0 | $0.0600 | 2s | yes
bad | ok | FAIL | - | 0 | $0.0000 | 0s | NO
broken | - | - | - | 0 | $0.0000 | 0s | ERROR`
	if got := strings.Join(rows, "\n"); got != want {
		t.Errorf("%s", got)
	}
	want = "bad: contains \"y\" (line 7): the answer is: a\nbroken: no model"
	if got := strings.Join(report().Failures(), "\n"); got != want {
		t.Errorf("%s", got)
	}
}

// TestPassRate checks that a case passes if enough of its runs pass.
func TestPassRate(t *testing.T) {
	for rate, want := range map[float64]bool{1: false, 0.75: false, 0.5: true, 0: true} {
		r := Report{Cases: []CaseReport{{Name: "a", Runs: []RunReport{{Checks: []Result{{Kind: "cost", Passed: true}}},
			{Checks: []Result{{Kind: "cost"}}}}}}}
		r.Finish(rate)
		if r.Passed != want || r.Cases[0].Rate != 0.5 {
			t.Errorf("rate %v: %+v", rate, r)
		}
		if cell := r.Table()[1][1]; cell != "1/2" {
			t.Errorf("the check passed %s", cell)
		}
	}
}

func TestJUnit(t *testing.T) {
	var b strings.Builder
	if err := report().JUnit(&b); err != nil {
		t.Fatal(err)
	}
	var read junitSuites
	if err := xml.Unmarshal([]byte(b.String()), &read); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	s := read.Suites[0]
	if s.Name != "eval.yaml" || s.Tests != 3 || s.Failures != 1 || s.Errors != 1 || len(s.Cases) != 3 ||
		len(s.Cases[1].Failures) != 1 || s.Cases[1].Failures[0].Type != "contains" || s.Cases[2].Error == nil ||
		!strings.Contains(s.Cases[1].Output, "a<b>") || s.Cases[0].Time != "2.000" {
		t.Errorf("%s", b.String())
	}
}
