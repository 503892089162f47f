package main

import "parley/tui"

// visible is a text that a terminal can print without obeying it.
func visible(text string) string { return tui.Visible(text) }

// String is a call on one line: the tool, and its most telling arguments.
func (u toolUse) String() string { return tui.CallLine(u.name, u.arguments) }
