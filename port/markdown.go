package port

import "strings"

// maxCells is the maximum number of cells of a table that HasHugeTable accepts.
const maxCells = 100_000

// HasHugeTable reports whether parsing a Markdown text could cost far more memory than the text has bytes: parsers fill
// each row of a table up with empty cells, to the number of columns. A table ends at an empty line.
func HasHugeTable(markdown string) bool {
	rows, columns := 0, 0
	for line := range strings.Lines(markdown) {
		if strings.TrimSpace(line) == "" {
			rows, columns = 0, 0
			continue
		}
		rows++
		if columns = max(columns, strings.Count(line, "|")); rows*columns > maxCells {
			return true
		}
	}
	return false
}
