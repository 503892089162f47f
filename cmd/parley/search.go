package main

import (
	"fmt"
	"strings"
	"time"

	"parley/client"
)

type searchCommand struct {
	listFlags
	Words   []string `arg:"" help:"Words to find. Quote a phrase twice: '\"exactly this\"'."`
	Project string   `placeholder:"DIR" help:"Search the sessions of one project: its folder on the server, or its id."`
	Limit   int      `default:"20" help:"Maximum number of messages."`
}

func (*searchCommand) Help() string {
	return `A message must have all the words. A word also finds words that begin with it; case and accents do not
count. The number behind the session is that of the event in its log.

Example:

  $ parley search deploy '"blue green"'
  $ parley log 3f0c0a52`
}

func (c *searchCommand) Run(p *program) error {
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	found, err := to.Search(p.ctx, client.SearchQuery{Text: strings.Join(c.Words, " "), Project: c.Project,
		Limit: c.Limit})
	if err != nil {
		return err
	}
	rows := table{{"MESSAGE", "FROM", "WHEN", "TITLE", "PASSAGE"}}
	for _, m := range found.Passages {
		rows = append(rows, []string{fmt.Sprintf("%s.%d", m.Session, m.Seq), string(m.From), ago(m.At, time.Now()),
			clip(m.Title, 30), client.Marked(m, "[", "]")})
	}
	if found.Indexing {
		fmt.Fprintln(p.stderr, "Earlier messages are still being indexed, and may be missing.")
	}
	return c.print(p, orEmpty(found.Passages), rows, "No message has these words.")
}
