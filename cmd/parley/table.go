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

// listFlags are those of every command that prints a list.
type listFlags struct {
	serverFlags
	JSON bool `name:"json" help:"Print JSON instead of a table."`
}

// A listing is a list that a server has, as a command shows it.
type listing[T any] struct {
	fetch func(to *connection) ([]T, error)
	title []string // of the columns
	row   func(T) []string
	none  string // a sentence for an empty list
	// project is the root of the project of a row, which is shown if the server has several; nil: rows have none.
	project func(T) string
}

// show prints the list of the server that the flags name.
func (l listing[T]) show(p *program, f listFlags) error {
	return p.with(f.serverFlags, func(to *connection) error {
		list, err := l.fetch(to)
		if err != nil {
			return err
		}
		projects, err := l.projects(p, to, f)
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

// projects are those of the server, if the list is to show them: there are several, and rows have one.
func (l listing[T]) projects(p *program, to *connection, f listFlags) ([]port.Project, error) {
	if l.project == nil || f.JSON {
		return nil, nil
	}
	projects, err := to.Projects(p.ctx)
	if len(projects) < 2 {
		return nil, err
	}
	return projects, err
}

// A table is a list for people; the first row has the titles of the columns.
type table [][]string

// print prints a list: as JSON for scripts, or as a table in which nothing obeys the terminal. none is a sentence for
// an empty table.
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

// printJSON prints a value so that both people and programs can read it.
func printJSON(w io.Writer, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", raw)
	return err
}

// clip is a text that fits a column.
func clip(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}

// ago is a time as people say it.
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

// orEmpty has JSON print a list as [], not as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
