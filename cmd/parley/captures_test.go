package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestCaptures writes the pictures of the full screen: text captures into docs/terminal.md, and drawings into
// docs/images. `make captures` runs it with the folder of the documents in PARLEY_CAPTURES.
func TestCaptures(t *testing.T) {
	docs := os.Getenv("PARLEY_CAPTURES")
	if docs == "" {
		t.Skip("make captures runs it")
	}
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", screenProject(t))
	defer stop()
	u := newScreen(t, 88, 24, []string{"COLORTERM="}, "--server", addr)
	texts := map[string]string{}
	var film []still
	shoot := func(seconds float64) { film = append(film, still{u.screen("-e"), seconds}) }
	u.see("✓ ready")
	shoot(1)
	for _, part := range []string{"write ", "hello ", "to ", "note.txt"} {
		u.keys("-l", part)
		u.see(strings.TrimSpace(part))
		shoot(0.3)
	}
	u.keys("Enter")
	u.see("I write")
	shoot(0.5)
	u.see("write_file wants your approval", "[y]es")
	texts["approval"] = u.screen()
	shoot(2.5)
	u.keys("y")
	u.see("It is", "● writing")
	shoot(0.5)
	u.see("It is written.", "✓ ready")
	shoot(1.5)
	u.enter("think about tea")
	u.see("Thought for", "● writing")
	shoot(0.6)
	u.see("✓ ready")
	u.enter("delegate list files to explorer")
	u.see("✓ explorer", "explorer says", "✓ ready")
	texts["conversation"] = u.screen()
	shoot(3)
	u.enter("ask me")
	u.see("Tea or coffee?", "A number or Enter answers")
	texts["question"] = u.screen()
	u.keys("2")
	u.see("✓ ready")
	u.enter("/plan build a house")
	u.see("[a]pprove")
	texts["plan"] = u.screen()
	dark := u.screen("-e")
	u.keys("r")
	u.see("Plan (rejected)")
	u.enter("/help")
	u.see("/quit", "Esc closes")
	texts["help"] = u.screen()
	u.keys("Escape")
	u.see("Plan (rejected)")
	u.enter("/theme light")
	u.see("Plan (rejected)", "✓ ready")
	light := u.screen("-e")

	page := filepath.Join(docs, "terminal.md")
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		raw = []byte(replaceCapture(t, string(raw), name, text))
	}
	for file, content := range map[string]string{page: string(raw),
		filepath.Join(docs, "images", "terminal.svg"):       drawing(88, 24, darkPalette, film...),
		filepath.Join(docs, "images", "terminal-dark.svg"):  drawing(88, 24, darkPalette, still{dark, 1}),
		filepath.Join(docs, "images", "terminal-light.svg"): drawing(88, 24, lightPalette, still{light, 1})} {
		if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// replaceCapture replaces the block that follows the mark of a capture.
func replaceCapture(t *testing.T, page, name, text string) string {
	mark := "<!-- capture " + name + " -->\n"
	before, after, ok := strings.Cut(page, mark)
	if !ok {
		t.Fatalf("docs/terminal.md has no %s", mark)
	}
	if strings.HasPrefix(after, "```text\n") {
		_, after, _ = strings.Cut(after, "\n```\n")
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return before + mark + "```text\n" + strings.Join(lines, "\n") + "\n```\n" + after
}

// A still is a screen with its control sequences, and the time for which it is shown.
type still struct {
	screen  string
	seconds float64
}

// A colourScheme has the background, the foreground, and the first sixteen colours of a terminal.
type colourScheme struct {
	back, front string
	first       [16]string
}

var (
	darkPalette = colourScheme{"#16181d", "#d8dbe2", [16]string{"#16181d", "#e5707a", "#8ccf7e", "#e5c76b", "#67b0e8",
		"#c47fd5", "#6cbfbf", "#d8dbe2", "#6b7280", "#e5707a", "#8ccf7e", "#e5c76b", "#67b0e8", "#c47fd5", "#6cbfbf",
		"#ffffff"}}
	lightPalette = colourScheme{"#fbfbf9", "#24272e", [16]string{"#24272e", "#b3261e", "#2e7d32", "#8a5a00", "#1a56b0",
		"#8e24aa", "#00707a", "#8a8f98", "#6b7280", "#b3261e", "#2e7d32", "#8a5a00", "#1a56b0", "#8e24aa", "#00707a",
		"#000000"}}
)

// colour returns one of the 256 colours of a terminal.
func (s colourScheme) colour(n int) string {
	switch {
	case n < 16:
		return s.first[n]
	case n >= 232:
		grey := 8 + 10*(n-232)
		return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey)
	}
	level := func(n int) int {
		if n == 0 {
			return 0
		}
		return 55 + 40*n
	}
	n -= 16
	return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
}

const cellWidth, cellHeight = 8.43, 18.0

// drawing returns an SVG that shows the given screens in an endless loop.
func drawing(width, height int, s colourScheme, frames ...still) string {
	total := 0.0
	for _, f := range frames {
		total += f.seconds
	}
	w, h := float64(width)*cellWidth+24, float64(height)*cellHeight+24
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" `+
		`font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14">`+"\n",
		w, h, w, h)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", s.back)
	at := 0.0
	for i, f := range frames {
		if i < len(frames)-1 { // viewers without animation show the last one
			b.WriteString(`<g display="none">`)
		} else {
			b.WriteString("<g>")
		}
		if len(frames) > 1 { // visible from its own time until the next frame
			from, to := at/total, (at+f.seconds)/total
			fmt.Fprintf(&b, `<animate attributeName="display" values="none;inline;none" keyTimes="0;%.4f;%.4f" `+
				`dur="%.1fs" calcMode="discrete" repeatCount="indefinite"/>`, from, min(to, 1), total)
		}
		b.WriteString("\n")
		for row, line := range strings.Split(strings.TrimRight(f.screen, "\n"), "\n") {
			s.line(&b, 12, 12+float64(row+1)*cellHeight-5, line)
		}
		b.WriteString("</g>\n")
		at += f.seconds
	}
	b.WriteString("</svg>\n")
	return b.String()
}

var sgr = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// line draws each part of a line at its column.
func (s colourScheme) line(b *strings.Builder, x, y float64, line string) {
	front, bold, dim := s.front, false, false
	column := 0
	part := func(text string) {
		trimmed := strings.TrimLeft(text, " ")
		column += len(text) - len(trimmed)
		if shown := strings.TrimRight(trimmed, " "); shown != "" {
			style := ""
			if bold {
				style += ` font-weight="bold"`
			}
			if dim {
				style += ` opacity="0.7"`
			}
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s"%s xml:space="preserve">%s</text>`+"\n",
				x+float64(column)*cellWidth, y, front, style, html.EscapeString(shown))
		}
		column += len([]rune(trimmed))
	}
	last := 0
	for _, m := range sgr.FindAllStringSubmatchIndex(line, -1) {
		part(line[last:m[0]])
		last = m[1]
		codes := strings.Split(line[m[2]:m[3]], ";")
		for i := 0; i < len(codes); i++ {
			n, _ := strconv.Atoi(codes[i])
			switch {
			case n == 0:
				front, bold, dim = s.front, false, false
			case n == 1:
				bold = true
			case n == 2:
				dim = true
			case n == 22:
				bold, dim = false, false
			case n >= 30 && n <= 37:
				front = s.first[n-30]
			case n >= 90 && n <= 97:
				front = s.first[n-82]
			case n == 39:
				front = s.front
			case n == 38 && i+2 < len(codes):
				n, _ := strconv.Atoi(codes[i+2])
				front = s.colour(n)
				i += 2
			case n == 48 && i+2 < len(codes):
				i += 2
			}
		}
	}
	part(line[last:])
}
