// Package webhook delivers signed messages to URLs. It repeats a delivery, with
// a stable id, until the receiver has accepted it or a day is over.
//
// The log decides that a delivery is due; the row of its effect has the state.
// A Dispatcher waits for the time of the next row, or for a poke. It claims a
// row for as long as an attempt may take, makes the attempt, and stores the
// outcome. If the process dies in between, the claim runs out, and a later
// attempt uses the same id.
package webhook
