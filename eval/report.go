package eval

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A Report contains the results of all cases, in the order of the file.
type Report struct {
	File   string       `json:"file"`
	Passed bool         `json:"passed"`
	Cases  []CaseReport `json:"cases"`
}

// A CaseReport contains the results of one case, one for each repeat.
type CaseReport struct {
	Name   string      `json:"name"`
	Passed bool        `json:"passed"`
	Rate   float64     `json:"pass_rate"`
	Runs   []RunReport `json:"runs"`
}

// A RunReport is one run of a case. Error explains why its checks could not be made.
type RunReport struct {
	Passed    bool       `json:"passed"`
	Error     string     `json:"error,omitempty"`
	Checks    []Result   `json:"checks"`
	Exchanges []Exchange `json:"exchanges"`
}

// Finish counts the passed cases. A case passes if at least the fraction rate of its runs passed.
func (r *Report) Finish(rate float64) {
	r.Passed = true
	for i := range r.Cases {
		c := &r.Cases[i]
		passed := 0
		for j := range c.Runs {
			run := &c.Runs[j]
			run.Passed = run.Error == "" && !slices.ContainsFunc(run.Checks, func(r Result) bool { return !r.Passed })
			if run.Passed {
				passed++
			}
		}
		c.Rate = float64(passed) / float64(max(len(c.Runs), 1))
		c.Passed = c.Rate >= rate && len(c.Runs) > 0
		r.Passed = r.Passed && c.Passed
	}
}

// column returns the name of a check: its kind and its number among the checks of that kind. The number is left out for
// the first one.
func column(kind string, number int) string {
	if number == 1 {
		return kind
	}
	return fmt.Sprintf("%s %d", kind, number)
}

// columns returns the names of the checks of a run, in order.
func (r RunReport) columns() (names []string) {
	counts := map[string]int{}
	for _, c := range r.Checks {
		counts[c.Kind]++
		names = append(names, column(c.Kind, counts[c.Kind]))
	}
	return names
}

// Table returns a row for each case with a column for each check. The first row contains the titles.
func (r Report) Table() [][]string {
	most := map[string]int{}
	for _, c := range r.Cases {
		for _, run := range c.Runs {
			counts := map[string]int{}
			for _, check := range run.Checks {
				counts[check.Kind]++
				most[check.Kind] = max(most[check.Kind], counts[check.Kind])
			}
		}
	}
	title := []string{"CASE"}
	for _, kind := range kinds {
		for n := range most[kind] {
			title = append(title, column(kind, n+1))
		}
	}
	rows := [][]string{append(slices.Clone(title), "TOKENS", "COST", "TIME", "PASSED")}
	for _, c := range r.Cases {
		row := []string{c.Name}
		for _, name := range title[1:] {
			row = append(row, c.cell(name))
		}
		tokens, micros, took := int64(0), int64(0), time.Duration(0)
		for _, run := range c.Runs {
			u := total(run.Exchanges)
			tokens, micros = tokens+u.Input+u.Output, micros+u.CostMicros
			took += run.took()
		}
		rows = append(rows, append(row, fmt.Sprint(tokens), fmt.Sprintf("$%.4f", float64(micros)/1e6),
			took.Round(100*time.Millisecond).String(), c.verdict()))
	}
	return rows
}

func (r RunReport) took() (d time.Duration) {
	for _, x := range r.Exchanges {
		d += time.Duration(x.Took)
	}
	return d
}

// cell shows how often a check passed.
func (c CaseReport) cell(name string) string {
	made, passed := 0, 0
	for _, run := range c.Runs {
		if i := slices.Index(run.columns(), name); i >= 0 {
			if made++; run.Checks[i].Passed {
				passed++
			}
		}
	}
	switch {
	case made == 0:
		return "-"
	case len(c.Runs) > 1:
		return fmt.Sprintf("%d/%d", passed, made)
	case passed == 0:
		return "FAIL"
	}
	return "ok"
}

func (c CaseReport) verdict() string {
	word := "yes"
	switch {
	case !c.Passed && slices.ContainsFunc(c.Runs, func(r RunReport) bool { return r.Error != "" }):
		word = "ERROR"
	case !c.Passed:
		word = "NO"
	}
	if len(c.Runs) > 1 {
		word += fmt.Sprintf(" (%.0f %%)", 100*c.Rate)
	}
	return word
}

// Failures returns a line for each failed check and for each run with an error.
func (r Report) Failures() (lines []string) {
	for _, c := range r.Cases {
		for i, run := range c.Runs {
			name := c.Name
			if len(c.Runs) > 1 {
				name += fmt.Sprintf(", run %d", i+1)
			}
			if run.Error != "" {
				lines = append(lines, name+": "+run.Error)
			}
			for _, check := range run.Checks {
				if !check.Passed {
					lines = append(lines, fmt.Sprintf("%s: %s %q (line %d): %s", name, check.Kind, check.Text,
						check.Line,
						check.Detail))
				}
			}
		}
	}
	return lines
}

type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class    string         `xml:"classname,attr"`
		Name     string         `xml:"name,attr"`
		Time     string         `xml:"time,attr"`
		Failures []junitProblem `xml:"failure"`
		Error    *junitProblem  `xml:"error"`
		Output   string         `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report as JUnit XML: a test case for each run of a case.
func (r Report) JUnit(to io.Writer) error {
	suite := junitSuite{Name: r.File}
	took := time.Duration(0)
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
	for _, c := range r.Cases {
		for i, run := range c.Runs {
			one := junitCase{Class: r.File, Name: c.Name, Time: seconds(run.took())}
			if len(c.Runs) > 1 {
				one.Name += fmt.Sprintf(" #%d", i+1)
			}
			for _, check := range run.Checks {
				if !check.Passed {
					one.Failures = append(one.Failures, junitProblem{fmt.Sprintf("%s %q", check.Kind, check.Text),
						check.Kind, check.Detail})
				}
			}
			if run.Error != "" {
				one.Error = &junitProblem{run.Error, "error", run.Error}
				suite.Errors++
			} else if len(one.Failures) > 0 {
				suite.Failures++
			}
			for _, x := range run.Exchanges {
				one.Output += "> " + x.Input + "\n" + x.Answer + "\n"
			}
			one.Output = printable(one.Output)
			took += run.took()
			suite.Tests++
			suite.Cases = append(suite.Cases, one)
		}
	}
	suite.Time = seconds(took)
	raw, err := xml.MarshalIndent(junitSuites{Suites: []junitSuite{suite}}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "%s%s\n", xml.Header, raw)
	return err
}

// printable removes characters that XML 1.0 does not allow.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, text)
}
