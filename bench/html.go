package bench

import (
	"fmt"
	"html/template"
	"math"
	"os"
	"slices"
	"strings"
)

// WriteHTML writes the report as one self-contained page.
func (r *Report) WriteHTML(file string) error {
	var b strings.Builder
	if err := page.Execute(&b, map[string]any{"Report": r, "Check": r.Check(), "Tables": r.htmlTables(),
		"Plots": r.plots()}); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

type htmlTable struct {
	Scenario string
	Targets  []string
	Rows     [][]string
	Remarks  []string
}

func (r *Report) htmlTables() (list []htmlTable) {
	for _, t := range r.tables() {
		h := htmlTable{Scenario: t.scenario, Targets: t.targets, Remarks: t.remarks}
		for _, row := range t.rows {
			cells := []string{row.name}
			for _, c := range row.cells {
				cells = append(cells, c.String())
			}
			h.Rows = append(h.Rows, cells)
		}
		list = append(list, h)
	}
	return list
}

// A drawing is a plot of one curve for every target, with logarithmic axes.
type drawing struct {
	Title, Fit string
	SVG        template.HTML
}

// plots draws each curve with the medians of its repeats.
func (r *Report) plots() (list []drawing) {
	type key struct{ scenario, curve string }
	points := map[key]map[string]map[float64][]float64{} // by target, by x
	var keys []key
	for _, x := range r.Results {
		for curve, ps := range x.Curves {
			k := key{x.Scenario, curve}
			if points[k] == nil {
				points[k] = map[string]map[float64][]float64{}
				keys = append(keys, k)
			}
			if points[k][x.Target] == nil {
				points[k][x.Target] = map[float64][]float64{}
			}
			for _, p := range ps {
				points[k][x.Target][p.X] = append(points[k][x.Target][p.X], p.Y)
			}
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(a.scenario+a.curve, b.scenario+b.curve) })
	for _, k := range keys {
		lines := map[string][]Point{}
		fit := ""
		for target, byX := range points[k] {
			for x, ys := range byX {
				lines[target] = append(lines[target], Point{x, spreadOf(ys).median})
			}
			slices.SortFunc(lines[target], func(a, b Point) int { return int(math.Copysign(1, a.X-b.X)) })
			if e, ok := exponent(lines[target]); ok {
				fit += fmt.Sprintf("%s grows with the power %.2f. ", target, e)
			}
		}
		list = append(list, drawing{k.scenario + ": " + k.curve, fit, draw(lines)})
	}
	return list
}

var colours = []string{"#0b62d6", "#c2410c", "#15803d", "#7e22ce", "#a16207", "#0e7490"}

const (
	plotWidth, plotHeight = 560.0, 300.0
	plotMargin            = 60.0
)

// draw returns an SVG. It needs no escaping, because the texts in it are numbers
// and names from this program.
func draw(lines map[string][]Point) template.HTML {
	lowX, highX, lowY, highY := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	var names []string
	for name, ps := range lines {
		names = append(names, name)
		for _, p := range ps {
			if p.X > 0 && p.Y > 0 {
				lowX, highX = min(lowX, p.X), max(highX, p.X)
				lowY, highY = min(lowY, p.Y), max(highY, p.Y)
			}
		}
	}
	const start = `<svg viewBox="0 0 %g %g" role="img" xmlns="http://www.w3.org/2000/svg" font-family="sans-serif">` +
		`<style>text{font-size:11px}.axis{fill:#555}.grid{stroke:#e4e4e4}</style>` +
		`<rect width="100%%" height="100%%" fill="#fff"/>`
	if math.IsInf(lowX, 1) {
		return template.HTML(fmt.Sprintf(start+`<text x="%g" y="%g">No point is above zero.</text></svg>`,
			plotWidth, plotHeight, plotMargin, plotHeight/2))
	}
	slices.Sort(names)
	if lowX == highX {
		lowX, highX = lowX/2, highX*2
	}
	lowY, highY = lowY/1.5, highY*1.5
	x := func(v float64) float64 {
		return plotMargin + (math.Log(v)-math.Log(lowX))/(math.Log(highX)-math.Log(lowX))*(plotWidth-1.5*plotMargin)
	}
	y := func(v float64) float64 {
		return plotHeight - plotMargin + 20 - (math.Log(v)-math.Log(lowY))/(math.Log(highY)-math.Log(lowY))*
			(plotHeight-plotMargin)
	}
	var b strings.Builder
	fmt.Fprintf(&b, start, plotWidth, plotHeight)
	for e := math.Floor(math.Log10(lowX)); e <= math.Log10(highX); e++ {
		if v := math.Pow(10, e); v >= lowX {
			fmt.Fprintf(&b, `<line x1="%.1f" y1="20" x2="%.1f" y2="%.1f" class="grid"/>`+
				`<text x="%.1f" y="%.1f" text-anchor="middle" class="axis">%s</text>`, x(v), x(v), plotHeight-plotMargin+20, x(v),
				plotHeight-20, number(v))
		}
	}
	for e := math.Floor(math.Log10(lowY)); e <= math.Log10(highY); e++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, e); v >= lowY && v <= highY {
				fmt.Fprintf(&b, `<line x1="%g" y1="%.1f" x2="%g" y2="%.1f" class="grid"/>`+
					`<text x="%g" y="%.1f" text-anchor="end" class="axis">%s</text>`, plotMargin, y(v), plotWidth-plotMargin/2, y(v),
					plotMargin-6, y(v)+4, number(v))
			}
		}
	}
	for i, name := range names {
		colour, path := colours[i%len(colours)], ""
		for _, p := range lines[name] {
			if p.X > 0 && p.Y > 0 {
				path += fmt.Sprintf("%.1f,%.1f ", x(p.X), y(p.Y))
				fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"><title>%s: %s at %s</title></circle>`,
					x(p.X),
					y(p.Y), colour, template.HTMLEscapeString(name), number(p.Y), number(p.X))
			}
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+
			`<text x="%g" y="%d" fill="%s">%s</text>`, path, colour, plotMargin+8, 34+16*i, colour,
			template.HTMLEscapeString(name))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

var page = template.Must(template.New("report").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>parley bench</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1a1a1a; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; }
th, td { text-align: left; padding: 0.2rem 0.9rem 0.2rem 0; border-bottom: 1px solid #ddd; vertical-align: top; }
td + td { font-variant-numeric: tabular-nums; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(26rem, 1fr)); gap: 1.5rem; }
figure { margin: 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; }
.bad { color: #b00020; } .good { color: #15703d; }
</style></head><body>
<h1>parley bench</h1>
<p>Version {{.Report.Version}}, {{.Report.Began}}. {{.Report.Machine.CPUs}} processors ({{.Report.Machine.Model}}),
Linux {{.Report.Machine.Kernel}}, memory {{.Report.Machine.Memory}}, {{.Report.Machine.Go}}.
Store {{.Report.Setup.Store}}, transport {{.Report.Setup.Transport}}, repeats {{.Report.Repeats}}.
{{if .Report.Setup.Short}}<strong>A short run: its figures mean nothing.</strong>{{end}}</p>
{{range .Report.Missing}}<p>Missing peer: {{.}}</p>{{end}}
<h2>Goals</h2>
<table><tr><th>Figure</th><th>Measured</th><th>Goal</th><th>Moonshot</th><th>Verdict</th><th>Peers, median</th><th></th></tr>
{{range .Check}}<tr><td>{{.Text}}</td><td>{{.Value}}</td><td>{{.Goal}}</td><td>{{.Moonshot}}</td>
<td class="{{.Class}}">{{.Verdict}}</td>
<td>{{.Peers}}</td><td>{{.Remark}}</td></tr>{{end}}</table>
{{if .Plots}}<h2>Growth</h2><p>Both axes are logarithmic. A straight line with the power 1 is proportional growth.</p>
<div class="plots">
{{range .Plots}}<figure><figcaption>{{.Title}}</figcaption>{{.SVG}}<p>{{.Fit}}</p></figure>{{end}}</div>{{end}}
<h2>Figures</h2>
{{range .Tables}}<h3>{{.Scenario}}</h3><table><tr><th></th>{{range .Targets}}<th>{{.}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>{{end}}</table>
{{range .Remarks}}<p class="bad">{{.}}</p>{{end}}{{end}}
</body></html>
`))
