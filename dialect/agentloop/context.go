package agentloop

import "parley"

// strategy is the document's name for the way the context is kept small.
const strategy = "ThresholdContextManager"

// unknownLimit is the assumed context limit of a model whose limit is unknown.
const unknownLimit = 128000

// A Context is the last measurement of a model's context. The zero value means
// that nothing was measured.
type Context struct {
	tokens, limit, messages int
}

// after returns the context after an event; false if the event is not a
// measurement.
func (c Context) after(body parley.EventBody) (Context, bool) {
	switch b := body.(type) {
	case parley.ContextMeasured:
		return Context{b.Tokens, b.Limit, b.Messages}, true
	case parley.ContextCompacted:
		return Context{b.After, b.Limit, b.Messages}, true
	}
	return c, false
}

func (c Context) info() contextInfo {
	limit := c.limit
	if limit <= 0 {
		limit = unknownLimit
	}
	return contextInfo{TokenCount: c.tokens, UsagePercent: usage(c.tokens, limit), TranscriptLength: c.messages,
		MaxTokens: limit, Strategy: strategy}
}

// usage returns a percentage with one decimal, rounded up as in the document's
// example, so that the real usage is never higher.
func usage(tokens, limit int) float64 {
	return float64(min((max(tokens, 0)*1000+limit-1)/limit, 1000)) / 10
}

// reduction returns a percentage with one decimal, rounded down.
func reduction(before, after int) float64 {
	if before <= 0 || after >= before {
		return 0
	}
	return float64((before-after)*1000/before) / 10
}
