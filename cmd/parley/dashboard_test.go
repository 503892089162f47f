package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	dto "github.com/prometheus/client_model/go"
)

// An expression is one of the dashboard or of an alert. named are the labels
// that the texts beside it use.
type expression struct {
	where, text string
	named       []string
	selectors   []struct {
		Metric string
		Labels []struct {
			Name, Value string
			Regexp      bool
		}
	}
	grouped []string
}

// outside are metrics of Prometheus and of node_exporter, with the labels that
// they always have. node_exporter serves those of parley backup, which
// TestAlertsOfBackups checks.
var outside = map[string][]string{"up": nil, "node_filesystem_avail_bytes": {"fstype", "mountpoint"},
	"parley_backup_succeeded": nil, "parley_backup_last_success_timestamp_seconds": nil}

// grafana replaces Grafana's variables, so that an expression can be parsed.
var grafana = strings.NewReplacer("$__rate_interval", "5m", "$job", "parley", "$instance", ".*")

// dashboard reads the expressions of deploy/grafana/parley.json.
func dashboard(t *testing.T) (list []expression) {
	t.Helper()
	var board struct {
		Panels []struct {
			ID          int
			Type, Title string
			Targets     []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
	}
	raw, err := os.ReadFile("../../deploy/grafana/parley.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range board.Panels {
		if seen[p.ID] || (len(p.Targets) == 0) != (p.Type == "row") {
			t.Errorf("panel %d, %s, has the number of another, or nothing to show", p.ID, p.Title)
		}
		seen[p.ID] = true
		for _, target := range p.Targets {
			list = append(list, expression{where: "panel " + p.Title, text: grafana.Replace(target.Expr),
				named: labelsIn(`{{(\w+)}}`, target.LegendFormat)})
		}
	}
	for _, v := range board.Templating.List {
		if query, ok := strings.CutPrefix(v.Query, "label_values("); ok && v.Type == "query" {
			series, _, _ := strings.Cut(query, ", ")
			list = append(list, expression{where: "variable " + v.Name, text: grafana.Replace(series)})
		}
	}
	return list
}

// alerts reads the expressions of deploy/prometheus/alerts.yaml.
func alerts(t *testing.T) (list []expression, names []string) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	raw, err := os.ReadFile("../../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalWithOptions(raw, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			severity, summary := r.Labels["severity"], r.Annotations["summary"]
			if slices.Contains(names, r.Alert) || !slices.Contains([]string{"info", "warning", "critical"}, severity) ||
				summary == "" || r.Annotations["action"] == "" || r.For != "" &&
				!regexp.MustCompile(`^\d+m$`).MatchString(r.For) {
				t.Errorf("%s: every alert has a name of its own, a severity, a summary and an action", r.Alert)
			}
			names = append(names, r.Alert)
			list = append(list, expression{where: "alert " + r.Alert, text: r.Expr,
				named: labelsIn(`\$labels\.(\w+)`, summary+r.Annotations["action"])})
		}
	}
	return list, names
}

func labelsIn(pattern, text string) (names []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// parse parses all expressions with the parser of Prometheus, which is in the
// module of the tools.
func parse(t *testing.T, list []expression) {
	t.Helper()
	var texts []string
	for _, e := range list {
		texts = append(texts, e.text)
	}
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "-C", "../../tools", "./promql")
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	var used []struct {
		Selectors json.RawMessage
		Grouped   []string
	}
	if err := json.Unmarshal(out, &used); err != nil || len(used) != len(list) {
		t.Fatalf("%v: %d of %d expressions", err, len(used), len(list))
	}
	for i, u := range used {
		list[i].grouped = u.Grouped
		if err := json.Unmarshal(u.Selectors, &list[i].selectors); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDashboardAndAlerts checks that the server has every metric, label and value
// in the dashboard and in the alerts, and that the docs explain every alert.
func TestDashboardAndAlerts(t *testing.T) {
	t.Parallel()
	list := dashboard(t)
	rules, names := alerts(t)
	list = append(list, rules...)
	parse(t, list)
	docs := map[string]string{}
	for _, name := range []string{"operating", "observe"} {
		raw, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		docs[name] = string(raw)
	}
	for _, name := range names {
		if !strings.Contains(docs["observe"], "`"+name+"`") {
			t.Errorf("docs/observe.md does not explain %s", name)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(Parley\\w+)`").FindAllStringSubmatch(docs["observe"], -1) {
		if !slices.Contains(names, m[1]) {
			t.Errorf("docs/observe.md explains %s, which is no alert", m[1])
		}
	}
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir(), "--drain",
		"1ms")
	defer stop()
	c := open(t, addr)
	c.say("write some text to note.txt") // creates metrics of models and tools
	c.until("ApprovalRequested", 1)
	c.approve(1)
	c.until("RunFinished", 1)
	served := scrape(t, addr, "")
	for _, e := range list {
		e.check(t, served, docs["operating"])
	}
}

// check compares an expression with the metrics of a server and with the table of
// metrics.
func (e expression) check(t *testing.T, served map[string]*dto.MetricFamily, table string) {
	t.Helper()
	known := []string{"job", "instance"}
	for _, s := range e.selectors {
		name := s.Metric
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(name, part); ok && served[name] == nil {
				name = base
			}
		}
		labels, values := outside[name], ""
		_, extern := outside[name]
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| ([^|]*) \\| (.*)$").FindStringSubmatch(table)
		switch {
		case extern, served[name] != nil && row == nil: // a metric of Go or of the process
		case row == nil || served[name] == nil && !sometimes[name]:
			t.Errorf("%s: there is no metric %s", e.where, s.Metric)
			continue
		default:
			labels, values = strings.Split(row[1], ", "), row[2]
		}
		for _, m := range served[name].GetMetric() {
			for _, l := range m.Label {
				labels, values = append(labels, l.GetName()), values+" "+l.GetValue()
			}
		}
		known = append(known, labels...)
		for _, l := range s.Labels {
			if l.Name == "job" || l.Name == "instance" || extern {
				continue
			}
			if !slices.Contains(labels, l.Name) {
				t.Errorf("%s: %s has no label %s", e.where, s.Metric, l.Name)
			}
			for value := range strings.SplitSeq(l.Value, "|") {
				if !regexp.MustCompile(`\b` + regexp.QuoteMeta(value) + `\b`).MatchString(values) {
					t.Errorf("%s: the label %s of %s is never %s", e.where, l.Name, s.Metric, value)
				}
			}
		}
	}
	for _, l := range e.grouped {
		if l != "le" && !slices.Contains(known, l) {
			t.Errorf("%s: no metric in it has the label %s", e.where, l)
		}
	}
	for _, l := range e.named {
		aggregated := strings.Contains(e.text, "(") && !strings.HasPrefix(e.text, "rate(")
		if aggregated && !slices.Contains(e.grouped, l) || !slices.Contains(known, l) {
			t.Errorf("%s names the label %s, which its result does not have", e.where, l)
		}
	}
}
