// Package webhook tells URLs what the log promised them: signed, by a stable id,
// until they have taken it or a day is over.
//
// That somebody is to be told is decided in the log; how far that got is in the
// row of the effect. A Dispatcher waits for the time of the next row, or for a
// poke, claims rows for as long as an attempt may take, makes the attempt, and
// writes down what came of it. Dead in between, the claim runs out and somebody
// makes the attempt again, under the same id.
package webhook
