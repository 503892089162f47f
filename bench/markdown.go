package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// WriteMarkdown writes the report as a Markdown page, and each plot as an SVG file into the folder plots beside the
// page.
func (r *Report) WriteMarkdown(file, plots string) error {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "# Benchmark report\n\n`parley bench check --markdown` wrote this page from one report of "+
		"`parley bench run`. [performance.md](performance.md) explains it.\n\nParley %s, %s. %d processors (%s), Linux %s, "+
		"memory %s, %s. Store: %s. Transport: %s. Repeats: %d. A figure is the median with its range.\n", r.Version,
		r.Began.Format("2006-01-02 15:04 MST"), m.CPUs, m.Model, m.Kernel, m.Memory, m.Go, r.Setup.Store,
		r.Setup.Transport, r.Repeats())
	if r.Setup.Short {
		b.WriteString("\n**A short run: its figures mean nothing.**\n")
	}
	for _, why := range r.Missing {
		fmt.Fprintf(&b, "\nMissing peer: %s\n", why)
	}
	b.WriteString("\n## Goals\n\n")
	writeRow(&b, "figure", "measured", "goal", "moonshot", "verdict", "peers, median", "remark")
	writeRow(&b, "---", "---", "---", "---", "---", "---", "---")
	for _, s := range r.Check() {
		writeRow(&b, s.Text, s.Value, s.Goal, s.Moonshot, s.Verdict, s.Peers, s.Remark)
	}
	if err := r.writePlots(&b, filepath.Dir(file), plots); err != nil {
		return err
	}
	b.WriteString("\n## Figures\n")
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "\n### %s\n\n", t.scenario)
		writeRow(&b, append([]string{"figure"}, t.targets...)...)
		writeRow(&b, append([]string{"---"}, repeated("---", len(t.targets))...)...)
		for _, row := range t.rows {
			cells := []string{row.name}
			for _, c := range row.cells {
				cells = append(cells, c.String())
			}
			writeRow(&b, cells...)
		}
		for _, s := range t.remarks {
			fmt.Fprintf(&b, "\n- %s\n", s)
		}
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// writePlots adds the plots to the page, and writes them into a folder that is named relative to the page's folder.
func (r *Report) writePlots(b *strings.Builder, page, folder string) error {
	drawings := r.plots()
	if len(drawings) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(page, folder), 0o755); err != nil {
		return err
	}
	b.WriteString("\n## Growth\n\nBoth axes are logarithmic. A straight line with the power 1 is proportional growth.\n")
	for _, d := range drawings {
		name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(d.Title), "-"), "-") + ".svg"
		if err := os.WriteFile(filepath.Join(page, folder, name), []byte(d.SVG+"\n"), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(b, "\n**%s.** %s\n\n![%s](%s)\n", d.Title, strings.TrimSpace(d.Fit), d.Title, folder+"/"+name)
	}
	return nil
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// writeRow writes one row of a table.
func writeRow(b *strings.Builder, cells ...string) {
	for _, cell := range cells {
		b.WriteString("| " + strings.ReplaceAll(cell, "|", "\\|") + " ")
	}
	b.WriteString("|\n")
}

func repeated(s string, n int) []string {
	return strings.Fields(strings.Repeat(s+" ", n))
}
