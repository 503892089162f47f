package demo

import (
	"regexp"
	"strings"
)

// This file has the acts that use the instructions, which the demo does not
// follow otherwise.

var marker = regexp.MustCompile(`\[([a-z2-7]{16,})\] marks these instructions`)

// leak prints the canary of the instructions, so that a user can see how the
// server reacts.
func leak(p place, _ []string) script {
	found := marker.FindStringSubmatch(p.instructions)
	if found == nil {
		return play(text("My instructions hold nothing that I must not say."))
	}
	return play(text("I must not say this: " + found[1] + ". But I have."))
}

// known prints the user's context that the server gives to agents.
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
