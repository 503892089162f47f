// Package screen looks at text that goes in and out: the sentinel finds attempts
// to talk a model out of its instructions, the canary shows when a model gives
// its instructions away, the redactor takes secrets out of what tools print.
//
// All of it computes and nothing else: no I/O, no clock, no goroutines. Every
// function takes time linear in its text, whatever the text is.
package screen
