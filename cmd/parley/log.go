package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"parley"
	"parley/client"
)

type logCommand struct {
	serverFlags
	Session string `arg:"" optional:"" help:"Session, by its id or the beginning of it (default: every session that the user may read, with --follow)."`
	Follow  bool   `short:"f" help:"Go on with new events until Ctrl-C."`
	Tree    bool   `help:"Print the events of sub-agents, too."`
	Project string `placeholder:"DIR" help:"Print the events of one project: its folder on the server, or its id."`
	All     bool   `help:"Without a session: start at the beginning, not with the next event."`
	Chunks  bool   `help:"Print each chunk of streamed answers; the whole answer follows anyway."`
	JSON    bool   `name:"json" help:"Print the lines of the log as JSON, all of them."`
}

func (*logCommand) Help() string {
	return `A line has the time, the beginning of the session's id, the seq, the type of the event and a summary. Colours
are used on a terminal, unless NO_COLOR is set.

Example:

  $ parley log 3f0c0a52
  $ parley log -f
  $ parley log 3f0c0a52 --json | jq 'select(.type == "RunFinished")'`
}

func (c *logCommand) Run(p *program) error {
	if c.Session == "" && !c.Follow {
		return errors.New("name a session, or follow all of them with -f; parley sessions lists them")
	}
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	ctx, stop := signal.NotifyContext(p.ctx, os.Interrupt)
	defer stop()
	ctx, end := untilClosed(ctx, p.stdout)
	defer end()
	w := &logWriter{out: bufio.NewWriter(p.stdout), color: p.colours(p.stdout), json: c.JSON, chunks: c.Chunks}
	log := client.Log{Tree: c.Tree, Project: c.Project}
	if c.Session != "" {
		if log.Session, err = sessionNamed(ctx, to.Client, c.Session); err != nil {
			return err
		}
	} else if _, err := to.Me(ctx); err != nil { // fail now: a follower would wait for the server
		return err
	}
	if !c.Follow && !c.Tree {
		for u, err := range to.Read(ctx, log.Session, 0) {
			if err == nil {
				err = w.write(u)
			}
			if err != nil {
				return errors.Join(w.out.Flush(), err)
			}
		}
		return w.out.Flush()
	}
	if !c.Follow {
		return errors.New("--tree needs --follow: sub-agents may start at any time")
	}
	cursor := ""
	if c.Session == "" && !c.All {
		cursor = client.Head
	}
	for u, err := range to.Follow(ctx, log, cursor) {
		switch {
		case err != nil && ctx.Err() != nil && p.ctx.Err() == nil:
			if exit, ok := errors.AsType[*exitError](context.Cause(ctx)); ok {
				return exit // the reader has closed the pipe
			}
			return nil // Ctrl-C
		case err != nil:
			return err
		case u.Lost != nil:
			fmt.Fprintf(p.stderr, "(the connection was lost; the log continues when the server is back: %v)\n", u.Lost)
		case u.Resync != nil:
			fmt.Fprintf(p.stderr, "(the log starts again: %v)\n", u.Resync)
		default:
			err := w.write(u)
			if err == nil {
				err = w.out.Flush()
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// colours reports whether a stream is a terminal of a person who wants colours.
func (p *program) colours(stream io.Writer) bool {
	_, plain := p.env("NO_COLOR")
	return isTerminal(stream) && !plain
}

// A logWriter prints events, one on each line.
type logWriter struct {
	out                 *bufio.Writer
	color, json, chunks bool
}

func (w *logWriter) write(u client.Update) error {
	e := u.Event
	var err error
	switch {
	case w.json:
		_, err = fmt.Fprintf(w.out, "%s\n", u.Line)
	case w.chunks || !e.IsPiece():
		kind := parley.TypeOf(e.Body)
		if b, ok := e.Body.(parley.Unreadable); ok {
			kind = b.Type
		}
		t := &terminal{color: w.color}
		line := fmt.Sprintf("%s %s %4d  %s  %s", t.in(dim, e.At.Local().Format("15:04:05.000")),
			t.in(dim, fmt.Sprintf("%.8s", e.Session)), e.Seq, t.in(colourOf(e.Body), fmt.Sprintf("%-18s", kind)),
			visible(clip(summaryOf(e.Body), 160)))
		_, err = fmt.Fprintln(w.out, strings.TrimRight(line, " "))
	}
	return err
}

// colourOf returns the colour of an event: red for trouble, green for an end, cyan for work, bold for a request.
func colourOf(body parley.EventBody) string {
	switch b := body.(type) {
	case parley.ProblemReported, parley.ToolCallBlocked, parley.CompactionFailed, parley.SessionHalted,
		parley.SessionDeleted:
		return red
	case parley.RunFinished:
		if b.Outcome != parley.Completed {
			return red
		}
		return green
	case parley.ApprovalRequested, parley.QuestionAsked, parley.InputReceived:
		return bold
	case parley.ToolCallRequested, parley.ToolCallStarted, parley.ToolCallFinished, parley.ChildSpawned,
		parley.ChildReturned, parley.FilesChanged, parley.ChangesUndone:
		return cyan
	}
	return "0"
}

// summaryOf describes an event on one line: with its texts if it has some, else with its body.
func summaryOf(body parley.EventBody) string {
	switch b := body.(type) {
	case parley.SessionOpened:
		return strings.TrimSpace(b.Agent + " " + b.Title)
	case parley.SessionRenamed:
		return b.Title
	case parley.InputReceived:
		return b.Content
	case parley.OutputAppended:
		return string(b.Kind) + ": " + b.Text
	case parley.OutputFinished:
		return string(b.Kind) + ": " + b.Text
	case parley.ToolCallRequested:
		return toolUse{b.Name, b.Arguments}.String()
	case parley.ToolCallFinished:
		return b.Name + " " + string(b.Outcome) + ": " + b.Result
	case parley.ApprovalRequested:
		return b.Name + ": " + b.Show
	case parley.ApprovalDecided:
		return strings.TrimSpace(string(b.Decision) + " " + b.Note)
	case parley.ProblemReported:
		return b.Message
	case parley.RunFinished:
		return fmt.Sprintf("%s, %d tokens %s", b.Outcome, b.Usage.Input+b.Usage.Output, b.Message)
	case parley.ChildSpawned:
		return b.Agent + ": " + b.Task
	case parley.Unreadable:
		return "(this version does not know the type)"
	}
	raw, err := json.Marshal(body)
	if err != nil || string(raw) == "{}" {
		return ""
	}
	return string(raw)
}
