package main

import "parley/tui"

// visible makes control sequences in a text visible, so that a terminal does not
// obey them.
func visible(text string) string { return tui.Visible(text) }

// String describes a call on one line: the tool and its most telling arguments.
func (u toolUse) String() string { return tui.CallLine(u.name, u.arguments) }
