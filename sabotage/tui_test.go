package sabotage

// tuiBugs are planted in the terminal client.
var tuiBugs = []bug{
	{"an answer can set terminal styles by a character reference", "tui/visible.go",
		"meant := html.UnescapeString(reference); strings.IndexFunc(meant, hidden) >= 0",
		"meant := html.UnescapeString(reference); meant == \"\"", "./tui", "TestUntrustedTextCannotControlTerminal"},
	{"a link of an answer reaches the terminal as a control sequence", "tui/visible.go",
		"text = link.ReplaceAllString(text, \"\")\n", "_ = link\n return text\n", "./tui", "TestUntrustedTextCannotControlTerminal"},
	{"a key that was typed before a card appeared answers it", "tui/cardkeys.go",
		"case !m.armed():", "case false:", "./tui", "TestKeysBeforeACardDoNotAnswerIt"},
	{"text that a user keeps typing answers a card", "tui/cardkeys.go",
		"m.card.from = m.at.Add(cardGuard)\n\t\tif name", "if name", "./tui", "TestKeysBeforeACardDoNotAnswerIt"},
	{"an approval does not say which call it is about", "tui/cardkeys.go",
		"client.Approval{Decision: d, Scope: scope, Digest: c.Digest}", "client.Approval{Decision: d, Scope: scope}",
		"./tui", "TestAnswers"},
	{"a repeated event is shown twice", "tui/talk.go",
		"if e.Position != 0 && e.Position <= t.Last {", "if false {", "./tui", "TestFoldInPartsAndTwice"},
}
