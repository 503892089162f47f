package tool

// Cap bounds the result of a call, whatever kind of tool it is of: one that is
// longer than 64 KiB keeps its head and its tail, with a line between them that
// says how much was left out. What is not text becomes visible as \xNN.
//
// What comes in pieces, or could be larger than memory, is written to an output
// instead, which does the same.
func Cap(text string) string {
	var o output
	o.Write([]byte(text))
	return o.String()
}
