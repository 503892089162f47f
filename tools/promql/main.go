// Command promql parses PromQL expressions with the parser of Prometheus, so that a
// test can compare the metrics and labels in them with those of the server. It
// reads a JSON list of expressions, and writes a list of the metrics and labels in
// each of them.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// A selector is a metric in an expression.
type selector struct {
	Metric string    `json:"metric"`
	Labels []matcher `json:"labels"`
}

type matcher struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Regexp bool   `json:"regexp"`
}

type used struct {
	Selectors []selector `json:"selectors"`
	Grouped   []string   `json:"grouped"` // labels after by and without
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var expressions []string
	if err := json.NewDecoder(os.Stdin).Decode(&expressions); err != nil {
		return err
	}
	var all []used
	for _, e := range expressions {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(e)
		if err != nil {
			return fmt.Errorf("%s: %w", e, err)
		}
		var u used
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			switch n := n.(type) {
			case *parser.VectorSelector:
				s := selector{Metric: n.Name}
				for _, m := range n.LabelMatchers {
					if m.Name != labels.MetricName {
						s.Labels = append(s.Labels, matcher{m.Name, m.Value,
							m.Type == labels.MatchRegexp || m.Type == labels.MatchNotRegexp})
					}
				}
				u.Selectors = append(u.Selectors, s)
			case *parser.AggregateExpr:
				u.Grouped = append(u.Grouped, n.Grouping...)
			}
			return nil
		})
		all = append(all, u)
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}
