package demo

import (
	"regexp"
	"strings"
)

// What the demo says of its instructions, which it does not follow otherwise.

var marker = regexp.MustCompile(`\[([a-z2-7]{16,})\] marks these instructions`)

// leak says what no model may say, so that one can see what becomes of it.
func leak(p place, _ []string) script {
	found := marker.FindStringSubmatch(p.instructions)
	if found == nil {
		return play(text("My instructions hold nothing that I must not say."))
	}
	return play(text("I must not say this: " + found[1] + ". But I have."))
}

// known says what the user has told the server that agents are to know.
func known(p place, _ []string) script {
	_, told, ok := strings.Cut(p.instructions, "Persisted user context:\n")
	if !ok {
		return play(text("Nobody has told me anything about you."))
	}
	if at := strings.LastIndex(told, "\n\n["); at >= 0 {
		told = told[:at]
	}
	return play(text("I was told: " + clip(told, 2000)))
}
