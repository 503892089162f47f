package agentloop

import "parley"

// What the document calls the way the context is kept small.
const strategy = "ThresholdContextManager"

// unknownLimit is what a model is taken to read that nobody was told about.
const unknownLimit = 128000

// A Context is what the model is given to read, as far as it was measured. The
// zero value was not.
type Context struct {
	tokens, limit, messages int
}

// after is the context after an event; false if the event does not tell.
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

// usage is in percent, of which one decimal is kept; rounded up, as the
// document's example is: there is never less room than it says.
func usage(tokens, limit int) float64 {
	return float64(min((max(tokens, 0)*1000+limit-1)/limit, 1000)) / 10
}

// reduction is in percent, of which one decimal is kept; rounded down.
func reduction(before, after int) float64 {
	if before <= 0 || after >= before {
		return 0
	}
	return float64((before-after)*1000/before) / 10
}
