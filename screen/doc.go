// Package screen checks text on its way in and out. The sentinel finds
// prompt-injection attempts. The canary shows when a model leaks its
// instructions. The redactor removes secrets from the output of tools.
//
// Except for the Classifier, which calls a model, this package does no I/O,
// reads no clock and starts no goroutines. Every function takes time linear in
// its text, whatever the text is.
package screen
