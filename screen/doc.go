// Package screen checks text on its way in and out. The sentinel finds
// prompt-injection attempts. The canary shows when a model leaks its
// instructions. The redactor removes secrets from the output of tools.
//
// Everything here only computes, except the Classifier, which calls a model: no
// I/O, no clock, no goroutines. Every function takes time linear in its text,
// whatever the text is.
package screen
