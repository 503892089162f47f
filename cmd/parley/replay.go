package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"parley"
	"parley/eval"
)

type replayCommand struct {
	playFlags
	Session string `arg:"" help:"Recorded session: its id or the beginning of it, a file that parley log --json or parley export wrote, or - for standard input."`
	Tools   string `default:"recorded" enum:"recorded,live" help:"Tools of the agent: recorded (a call gets the recorded result of the same call; any other call fails, and no tool runs) or live (the tools run)."`
	Keep    bool   `help:"Keep the session of the replay, and print its id."`
	JSON    bool   `name:"json" help:"Print both recordings as JSON."`
}

// Help is printed below the usage.
func (*replayCommand) Help() string {
	return `The inputs of the recording are sent to a new session, one after another. Each answer is compared with the
recorded one, word by word: [-recorded-] {+replayed+}, or in colours on a terminal.

Tools do not run. A call with the name and arguments of a recorded call gets the recorded result, and any other call
fails; the model is told. With --tools live, tools run as in any session.

Example:

  $ parley replay 3f0c0a52 --model gpt-4.1
  $ parley log 3f0c0a52 --json > session.jsonl
  $ parley replay session.jsonl --prompt prompt.md --json

Exit codes:

  0    every input was answered, whether or not the answers differ
  1    the recording was not replayed: no server, no such session, wrong flags
  3    a run of the replay failed
  130  Ctrl-C`
}

func (c *replayCommand) Run(p *program) error {
	ctx, stop := signal.NotifyContext(p.ctx, os.Interrupt)
	defer stop()
	err := c.replay(ctx, p)
	if ctx.Err() != nil && p.ctx.Err() == nil {
		return &exitError{exitInterrupted, nil}
	}
	return err
}

func (c *replayCommand) replay(ctx context.Context, p *program) error {
	play, err := c.player(ctx, p)
	if err != nil {
		return err
	}
	defer play.to.close()
	play.live, play.keep = c.Tools == "live", c.Keep
	recorded, err := c.recording(ctx, p, play)
	if err != nil {
		return err
	}
	play.source = recorded
	if recorded.Images > 0 {
		fmt.Fprintf(p.stderr, "(%d images of the recording are left out)\n", recorded.Images)
	}
	replayed, err := play.play(ctx, recorded.Exchanges)
	if err != nil && len(replayed.Exchanges) == 0 {
		return err
	}
	if c.Keep {
		fmt.Fprintf(p.stderr, "(session %s)\n", play.session)
	}
	failed := err
	result := replayResult{Recorded: recorded.Session, Tools: c.Tools}
	for i, x := range replayed.Exchanges {
		result.Exchanges = append(result.Exchanges, eval.Compare(recorded.Exchanges[i], x))
		if x.Outcome != parley.Completed && failed == nil {
			failed = fmt.Errorf("input %d: the run ended as %s. %s", i+1, x.Outcome, x.Message)
		}
	}
	if c.Keep {
		result.Replayed = play.session
	}
	if c.JSON {
		err = printJSON(p.stdout, result)
	} else {
		_, err = io.WriteString(p.stdout, result.text(&terminal{color: p.colours(p.stdout)}))
	}
	if err == nil && failed != nil {
		err = &exitError{exitFailed, failed}
	}
	return err
}

// player connects to a server, or starts one. The caller closes the connection.
func (c *playFlags) player(ctx context.Context, p *program) (*player, error) {
	prompt := ""
	if c.Prompt != "" {
		raw, err := os.ReadFile(c.Prompt)
		if err != nil {
			return nil, fmt.Errorf("the prompt cannot be read: %w", err)
		}
		if prompt = string(raw); parley.IsBlank(prompt) {
			return nil, fmt.Errorf("the prompt in %s is empty", c.Prompt)
		}
	}
	to, err := p.connectOrStart(ctx, c.serverFlags, settingsFor(c.Project)...)
	if err != nil {
		return nil, err
	}
	project, _, err := to.projectHere(ctx, c.Project)
	if err != nil {
		to.close()
		return nil, err
	}
	return &player{to: to, run: eval.Run{Agent: c.Agent, Model: c.Model, Prompt: prompt}, approve: c.Approve,
		project: project, timeout: c.Timeout}, nil
}

// recording reads the recorded session from a file or from the server.
func (c *replayCommand) recording(ctx context.Context, p *program, play *player) (eval.Recording, error) {
	from := p.stdin
	if c.Session != "-" {
		file, err := os.Open(c.Session)
		if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(c.Session, "./") {
			return c.stored(ctx, play)
		}
		if err != nil {
			return eval.Recording{}, err
		}
		defer file.Close()
		from = file
	}
	r, err := eval.Read(from)
	switch {
	case err != nil:
		return r, fmt.Errorf("%s: %w", c.Session, err)
	case r.Forked != 0:
		return r, fmt.Errorf("%s is a fork: it continues a conversation that is not in the file. Replay it by its "+
			"id, on the server that has it", c.Session)
	}
	return r, nil
}

// stored reads a recorded session from the server.
func (c *replayCommand) stored(ctx context.Context, play *player) (eval.Recording, error) {
	id, err := sessionNamed(ctx, play.to.Client, c.Session)
	if err != nil {
		return eval.Recording{}, err
	}
	var r eval.Recorder
	for u, err := range play.to.Read(ctx, id, 0) {
		if err != nil {
			return eval.Recording{}, err
		}
		r.Add(u.Event)
	}
	recorded := r.Recording()
	if len(recorded.Exchanges) == 0 {
		return recorded, fmt.Errorf("session %s has no input that was answered", id)
	}
	play.fork = recorded.Forked != 0
	return recorded, nil
}

// A replayResult compares a recording with its replay.
type replayResult struct {
	Recorded  parley.SessionID  `json:"recorded"`
	Replayed  parley.SessionID  `json:"replayed,omitempty"` // only with --keep
	Tools     string            `json:"tools"`
	Exchanges []eval.Comparison `json:"exchanges"`
}

// text formats the differences for a person.
func (r replayResult) text(t *terminal) string {
	var b strings.Builder
	var before, after eval.Exchange // sums of all exchanges
	answers, calls := 0, 0
	for i, x := range r.Exchanges {
		fmt.Fprintf(&b, "%s %s\n", t.in(bold, fmt.Sprintf("Input %d:", i+1)), visible(clip(x.Recorded.Input, 200)))
		fmt.Fprintf(&b, "  recorded  %s\n  replayed  %s\n", costOf(x.Recorded), costOf(x.Replayed))
		for _, y := range []struct{ sum, one *eval.Exchange }{{&before, &x.Recorded}, {&after, &x.Replayed}} {
			y.sum.Usage, y.sum.Took = y.sum.Usage.Plus(y.one.Usage), y.sum.Took+y.one.Took
		}
		if x.SameAnswer {
			b.WriteString("  answer    the same\n")
		} else {
			answers++
			fmt.Fprintf(&b, "  answer    %s\n", indented(wordDiff(t, eval.Words(x.Recorded.Answer, x.Replayed.Answer))))
		}
		switch {
		case !x.SameCalls:
			calls++
			b.WriteString("  calls\n")
			for _, part := range x.Calls() {
				mark, colour := marksOf(part.Op)
				fmt.Fprintf(&b, "    %s\n", t.in(colour, mark+" "+visible(clip(part.Text, 160))))
			}
		case len(x.Recorded.Calls) > 0:
			b.WriteString("  calls     the same\n")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "differs: %d of %[3]d answers, calls of %[2]d of %[3]d inputs\n", answers, calls, len(r.Exchanges))
	fmt.Fprintf(&b, "tokens %s, cost %s, time %s\n",
		change(before.Usage.Input+before.Usage.Output, after.Usage.Input+after.Usage.Output, func(n int64) string {
			return fmt.Sprint(n)
		}), change(before.Usage.CostMicros, after.Usage.CostMicros, dollars),
		change(int64(before.Took), int64(after.Took), func(n int64) string {
			return time.Duration(n).Round(10 * time.Millisecond).String()
		}))
	return b.String()
}

// costOf describes agent, model, tokens, cost and time of an exchange.
func costOf(x eval.Exchange) string {
	end := ""
	if x.Outcome != parley.Completed {
		end = ", " + strings.TrimSpace(fmt.Sprintf("%s %s", x.Outcome, visible(clip(x.Message, 200))))
	}
	return fmt.Sprintf("%s, %s: %d tokens, %s, %s%s", x.Agent, x.Model, x.Usage.Input+x.Usage.Output,
		dollars(x.Usage.CostMicros), time.Duration(x.Took).Round(10*time.Millisecond), end)
}

// change shows a number before and after, with the difference in percent.
func change(before, after int64, show func(int64) string) string {
	percent := ""
	if before > 0 && after != before {
		percent = fmt.Sprintf(" (%+.0f %%)", 100*float64(after-before)/float64(before))
	}
	return show(before) + " → " + show(after) + percent
}

// marksOf returns the sign and the colour of a part of a difference.
func marksOf(op eval.Op) (mark, colour string) {
	switch op {
	case eval.Removed:
		return "-", red
	case eval.Added:
		return "+", green
	}
	return " ", "0"
}

// wordDiff marks the differences within a text: with colours, or else with
// brackets.
func wordDiff(t *terminal, parts []eval.Part) string {
	var b strings.Builder
	for _, part := range parts {
		text := visible(part.Text)
		words := strings.TrimRight(text, " \n\t")
		space := text[len(words):]
		mark, colour := marksOf(part.Op)
		switch {
		case part.Op == eval.Same || words == "":
			b.WriteString(text)
		case t.color:
			b.WriteString(t.in(colour, words) + space)
		case mark == "-":
			b.WriteString("[-" + words + "-]" + space)
		default:
			b.WriteString("{+" + words + "+}" + space)
		}
	}
	return b.String()
}

// indented aligns all lines after the first below the first.
func indented(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if i > 0 && line != "" {
			lines[i] = "            " + line
		}
	}
	return strings.Join(lines, "\n")
}
