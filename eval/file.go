package eval

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// A File contains inputs to run and checks of their answers.
type File struct {
	Path  string
	Judge string // the model that judges; empty if no check needs one
	Live  bool   // run tools, instead of returning recorded results
	Cases []Case
}

// A Case is a recorded session, or inputs for a new one, with checks.
type Case struct {
	Name    string
	Line    int    // in the file; zero: the case comes from a file of the folder
	Session string // the file of a recorded session; empty: the case has inputs
	Inputs  []string
	Run     Run
	Checks  []Check
}

// A Run overrides the recorded agent, model or prompt.
type Run struct {
	Agent, Model string
	Prompt       string // replaces the instructions of the agent
}

// Load reads a file and finds the sessions that it names. It reports every mistake, each with the file and the line.
func Load(path string) (*File, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &fileReader{folder: filepath.Dir(path), file: &File{Path: path}}
	tree, err := parser.ParseBytes(raw, 0)
	switch e, ok := errors.AsType[yaml.Error](err); {
	case ok && e.GetToken() != nil:
		return nil, fmt.Errorf("%s:%d: %s", path, e.GetToken().Position.Line, e.GetMessage())
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(tree.Docs) != 1 || tree.Docs[0].Body == nil:
		return nil, fmt.Errorf("%s: one YAML document is wanted, with sessions or cases", path)
	}
	r.top(tree.Docs[0].Body)
	if len(r.wrong) == 0 {
		r.finish()
	}
	return r.file, errors.Join(r.wrong...)
}

type fileReader struct {
	folder   string // folder of the file, to which paths are relative
	file     *File
	sessions string // the folder of recorded sessions; empty: none
	run      Run
	checks   []Check // for every case
	wrong    []error
}

func (r *fileReader) fail(line int, format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Errorf("%s:%d: %w", r.file.Path, line, fmt.Errorf(format, args...)))
}

// A field is a key of a mapping with its value.
type field struct {
	key   string
	line  int
	value ast.Node
}

// fields returns the fields of a mapping. A key that is not in known is a mistake.
func (r *fileReader) fields(node ast.Node, known ...string) (list []field) {
	mapping, ok := node.(ast.MapNode)
	if !ok {
		r.fail(lineOf(node), "lines of the form KEY: VALUE are wanted here; the keys are %s", strings.Join(known, ", "))
		return nil
	}
	for it := mapping.MapRange(); it.Next(); {
		f := field{it.Key().GetToken().Value, it.Key().GetToken().Position.Line, it.Value()}
		if !slices.Contains(known, f.key) {
			r.fail(f.line, "there is no key %q here; the keys are %s", f.key, strings.Join(known, ", "))
			continue
		}
		list = append(list, f)
	}
	return list
}

func lineOf(node ast.Node) int { return node.GetToken().Position.Line }

// text returns the value of a field as it is written. An empty value is a mistake.
func (r *fileReader) text(f field) string {
	text := ""
	switch v := f.value.(type) {
	case *ast.NullNode:
	case *ast.LiteralNode:
		text = v.Value.Value
	case ast.ScalarNode:
		text = v.GetToken().Value
	default:
		r.fail(f.line, "%s must be a text", f.key)
		return ""
	}
	if text == "" {
		r.fail(f.line, "%s has no value", f.key)
	}
	return text
}

// list returns the entries of a list.
func (r *fileReader) list(f field) []ast.Node {
	seq, ok := f.value.(*ast.SequenceNode)
	if !ok {
		r.fail(f.line, "%s must be a list", f.key)
		return nil
	}
	return seq.Values
}

func (r *fileReader) top(body ast.Node) {
	fields := r.fields(body, "sessions", "agent", "model", "prompt", "tools", "judge", "checks", "cases")
	for _, f := range fields { // must be known before the checks are read
		if f.key == "judge" {
			r.file.Judge = r.text(f)
		}
	}
	var cases []ast.Node
	for _, f := range fields {
		switch f.key {
		case "judge":
		case "sessions":
			r.sessions = filepath.Join(r.folder, r.text(f))
			if info, err := os.Stat(r.sessions); err != nil || !info.IsDir() {
				r.fail(f.line, "%s is not a folder", r.sessions)
			}
		case "tools":
			switch tools := r.text(f); tools {
			case "live":
				r.file.Live = true
			case "recorded", "":
			default:
				r.fail(f.line, "tools must be recorded or live, not %q", tools)
			}
		case "checks":
			r.checks = r.checksOf(f)
		case "cases":
			cases = r.list(f)
		default:
			r.runField(&r.run, f)
		}
	}
	for _, node := range cases { // after the fields that all cases share
		r.readCase(node)
	}
}

// runField reads a field of a Run: the agent, the model or the prompt.
func (r *fileReader) runField(to *Run, f field) {
	text := r.text(f)
	switch f.key {
	case "agent":
		to.Agent = text
	case "model":
		to.Model = text
	case "prompt":
		raw, err := os.ReadFile(filepath.Join(r.folder, text))
		if err != nil {
			r.fail(f.line, "the prompt cannot be read: %w", err)
		}
		to.Prompt = string(raw)
	}
}

func (r *fileReader) readCase(node ast.Node) {
	c := Case{Line: lineOf(node), Run: r.run}
	before := len(r.wrong)
	for _, f := range r.fields(node, "name", "session", "input", "inputs", "agent", "model", "prompt", "checks") {
		if c.Line > f.line || c.Line == 0 {
			c.Line = f.line
		}
		switch f.key {
		case "name":
			c.Name = r.text(f)
		case "session":
			c.Session = filepath.Join(r.folder, r.text(f))
			if r.sessions != "" {
				c.Session = filepath.Join(r.sessions, r.text(f))
			}
			if _, err := os.Stat(c.Session); err != nil {
				r.fail(f.line, "the recorded session cannot be read: %w", err)
			}
		case "input":
			c.Inputs = append(c.Inputs, r.text(f))
		case "inputs":
			for _, one := range r.list(f) {
				c.Inputs = append(c.Inputs, r.text(field{"an input", lineOf(one), one}))
			}
		case "checks":
			c.Checks = r.checksOf(f)
		default:
			r.runField(&c.Run, f)
		}
	}
	if len(r.wrong) > before {
		return
	}
	if (c.Session == "") == (len(c.Inputs) == 0) {
		r.fail(c.Line, "a case has a session, or an input, or inputs")
		return
	}
	r.file.Cases = append(r.file.Cases, c)
}

// finish names the cases, adds sessions of the folder that are in no case, and appends the checks for every case.
func (r *fileReader) finish() {
	if r.sessions != "" {
		files, _ := filepath.Glob(filepath.Join(r.sessions, "*.jsonl")) // the pattern is valid
		for _, file := range files {
			if !slices.ContainsFunc(r.file.Cases, func(c Case) bool { return c.Session == file }) {
				r.file.Cases = append(r.file.Cases, Case{Session: file, Run: r.run})
			}
		}
	}
	if len(r.file.Cases) == 0 {
		r.fail(1, "there are no cases: no cases are listed, and the folder of sessions has no file *.jsonl")
	}
	names := map[string]bool{}
	for i := range r.file.Cases {
		c := &r.file.Cases[i]
		if c.Name == "" && c.Session != "" {
			c.Name = strings.TrimSuffix(filepath.Base(c.Session), ".jsonl")
		} else if c.Name == "" {
			c.Name = "line " + strconv.Itoa(c.Line)
		}
		if names[c.Name] {
			r.fail(max(c.Line, 1), "two cases are called %q", c.Name)
		}
		names[c.Name] = true
		c.Checks = append(slices.Clone(r.checks), c.Checks...)
		if len(c.Checks) == 0 {
			r.fail(max(c.Line, 1), "the case %q has no checks", c.Name)
		}
	}
}

// kinds are the kinds of checks, in the order of the table's columns.
var kinds = []string{"contains", "not_contains", "matches", "tool_called", "tool_not_called", "cost", "time", "judge"}

func (r *fileReader) checksOf(f field) (list []Check) {
	for _, node := range r.list(f) {
		c := Check{Line: lineOf(node)}
		before := len(r.wrong)
		for _, f := range r.fields(node, append(slices.Clone(kinds), "input")...) {
			if f.key == "input" {
				n, err := strconv.Atoi(r.text(f))
				if err != nil || n < 1 {
					r.fail(f.line, "input must be the number of an input, from 1")
				}
				c.Input = n
				continue
			}
			if c.Kind != "" {
				r.fail(f.line, "a check has one kind; begin another check with - %s", f.key)
				continue
			}
			c.Kind, c.Line = f.key, f.line
			r.check(&c, f)
		}
		if len(r.wrong) > before {
			continue
		}
		if c.Kind == "" {
			r.fail(c.Line, "a check has one of %s", strings.Join(kinds, ", "))
			continue
		}
		list = append(list, c)
	}
	return list
}

// check reads the value of a check.
func (r *fileReader) check(c *Check, f field) {
	var err error
	switch c.Kind {
	case "tool_called", "tool_not_called":
		r.tool(c, f)
		return
	case "judge":
		if r.file.Judge == "" {
			r.fail(f.line, "judge needs a model: name it at the top of the file with judge: MODEL")
		}
	}
	c.Text = r.text(f)
	switch c.Kind {
	case "matches":
		c.pattern, err = regexp.Compile(c.Text)
	case "cost":
		c.micros, err = parseDollars(c.Text)
	case "time":
		c.most, err = time.ParseDuration(c.Text)
		if err == nil && c.most <= 0 {
			err = errors.New("it must be more than 0")
		}
	}
	if err != nil {
		r.fail(f.line, "%s is not right: %w", c.Kind, err)
	}
}

func parseDollars(text string) (micros int64, err error) {
	dollars, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(dollars >= 0 && dollars < 1e9) {
		return 0, fmt.Errorf("%q is not an amount of US dollars, such as 0.05", text)
	}
	return int64(dollars * 1e6), nil
}

// tool reads the name of a tool, or its name and the arguments that a call must have.
func (r *fileReader) tool(c *Check, f field) {
	if _, ok := f.value.(ast.MapNode); !ok {
		c.Text = r.text(f)
		return
	}
	for _, g := range r.fields(f.value, "name", "arguments") {
		if g.key == "name" {
			c.Text = r.text(g)
		} else if err := yaml.NodeToValue(g.value, &c.arguments); err != nil {
			r.fail(g.line, "arguments must be KEY: VALUE, as the tool gets them")
		}
	}
	if c.Text == "" {
		r.fail(f.line, "%s needs the name of a tool", c.Kind)
	}
}
