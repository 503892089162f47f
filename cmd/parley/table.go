package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"parley/client"
	"parley/port"
)

// listFlags are the flags of every command that prints a list.
type listFlags struct {
	serverFlags
	JSON bool `name:"json" help:"Print JSON instead of a table."`
}

// A listing is a list from the server, with its columns in a command's output.
type listing[T any] struct {
	fetch func(to *connection) ([]T, error)
	title []string // titles of the columns
	row   func(T) []string
	none  string // printed for an empty list
	// project returns the project root of a row. If rows have no project, the function is nil.
	project func(T) string
}

// show prints the list of the server that the flags select.
func (l listing[T]) show(p *program, f listFlags) error {
	return p.with(f.serverFlags, func(to *connection) error {
		list, err := l.fetch(to)
		if err != nil {
			return err
		}
		projects, err := l.projects(p, to, f, list)
		if err != nil {
			return err
		}
		title := l.title
		if projects != nil {
			title = slices.Insert(title, 1, "PROJECT")
		}
		rows := table{title}
		for _, one := range list {
			row := l.row(one)
			if projects != nil {
				row = slices.Insert(row, 1, client.ProjectName(projects, l.project(one)))
			}
			rows = append(rows, row)
		}
		return f.print(p, orEmpty(list), rows, l.none)
	})
}

// projects returns the server's projects if the list is to show them: if there are several, or a row is of a project
// that the server no longer has.
func (l listing[T]) projects(p *program, to *connection, f listFlags, list []T) ([]port.Project, error) {
	if l.project == nil || f.JSON {
		return nil, nil
	}
	projects, err := to.Projects(p.ctx)
	gone := func(row T) bool {
		root := l.project(row)
		return root != "" && !slices.ContainsFunc(projects, func(p port.Project) bool { return p.Is(root) })
	}
	if err != nil || len(projects) < 2 && !slices.ContainsFunc(list, gone) {
		return nil, err
	}
	return projects, nil
}

// A table is a list for people. The first row contains the titles of the columns.
type table [][]string

// print prints a list as JSON, or as a table without control sequences. none is printed for an empty table.
func (f listFlags) print(p *program, list any, rows table, none string) error {
	if f.JSON {
		return printJSON(p.stdout, list)
	}
	if len(rows) == 1 {
		_, err := fmt.Fprintln(p.stderr, none)
		return err
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.Join(strings.Fields(visible(cell)), " ")
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// printJSON prints a value as indented JSON.
func printJSON(w io.Writer, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", raw)
	return err
}

// clip shortens a text to the width of a column.
func clip(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}

// ago describes a time relative to now.
func ago(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	d := now.Sub(at)
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return at.Local().Format("2006-01-02")
}

// orEmpty makes JSON print a nil list as [] instead of null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
