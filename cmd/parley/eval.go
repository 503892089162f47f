package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"

	"parley"
	"parley/eval"
)

type evalCommand struct {
	playFlags
	File     string  `arg:"" help:"YAML file with sessions or inputs, and checks of the answers."`
	Judge    string  `placeholder:"NAME" help:"Model that judges (default: the one that the file names)."`
	Jobs     int     `default:"1" placeholder:"N" help:"Number of sessions that run at the same time (default: 1)."`
	Repeat   int     `default:"1" placeholder:"N" help:"Number of times that each case runs (default: 1)."`
	PassRate float64 `default:"1" placeholder:"SHARE" help:"Share of the runs of a case that must pass, from 0 to 1 (default: 1)."`
	JUnit    string  `name:"junit" type:"path" placeholder:"FILE" help:"Write the results as JUnit XML to this file."`
	JSON     bool    `name:"json" help:"Print the results as JSON instead of a table."`
}

// Help is printed below the usage.
func (*evalCommand) Help() string {
	return `Each case is a recorded session that is run again, or a list of inputs. Tools do not run unless the file says
"tools: live": calls get the recorded results, as with parley replay. docs/eval.md describes the file.

Progress goes to standard error. --agent, --model and --prompt replace those of the file.

Example:

  $ parley eval examples/eval/eval.yaml --jobs 4
  $ parley eval eval.yaml --model gpt-4.1 --repeat 5 --pass-rate 0.8 --junit results.xml

Exit codes:

  0    every case passed
  1    the cases were not run: a mistake in the file, no server, wrong flags
  3    a case did not pass
  130  Ctrl-C`
}

func (c *evalCommand) Run(p *program) error {
	switch {
	case c.Jobs < 1 || c.Repeat < 1:
		return errors.New("--jobs and --repeat must be at least 1")
	case !(c.PassRate >= 0 && c.PassRate <= 1):
		return errors.New("--pass-rate must be a share from 0 to 1, such as 0.8")
	}
	ctx, stop := signal.NotifyContext(p.ctx, os.Interrupt)
	defer stop()
	report, err := c.evaluate(ctx, p)
	if ctx.Err() != nil && p.ctx.Err() == nil {
		return &exitError{exitInterrupted, nil}
	}
	if err != nil {
		return err
	}
	if err := c.print(p, report); err != nil {
		return err
	}
	if !report.Passed {
		return &exitError{exitFailed, nil} // the table shows the failed cases
	}
	return nil
}

// evaluate runs all cases and returns the report.
func (c *evalCommand) evaluate(ctx context.Context, p *program) (*eval.Report, error) {
	file, err := eval.Load(c.File)
	if err != nil {
		return nil, err
	}
	file.Judge = cmp.Or(c.Judge, file.Judge)
	recordings, err := recordingsOf(file)
	if err != nil {
		return nil, err
	}
	first, err := c.player(ctx, p)
	if err != nil {
		return nil, err
	}
	defer first.to.close()
	first.live = file.Live
	e := &evaluation{file: file, recordings: recordings, first: *first, program: p, left: len(file.Cases) * c.Repeat,
		report: &eval.Report{File: filepath.ToSlash(c.File), Cases: make([]eval.CaseReport, len(file.Cases))}}
	slots := make(chan struct{}, c.Jobs)
	var running sync.WaitGroup
	for i, one := range file.Cases {
		e.report.Cases[i] = eval.CaseReport{Name: one.Name, Runs: make([]eval.RunReport, c.Repeat)}
		for n := range c.Repeat {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				e.report.Cases[i].Runs[n] = e.run(ctx, i)
			})
		}
	}
	running.Wait()
	e.report.Finish(c.PassRate)
	return e.report, nil
}

// recordingsOf reads the recorded sessions of all cases, before any of them runs.
func recordingsOf(file *eval.File) ([]eval.Recording, error) {
	list := make([]eval.Recording, len(file.Cases))
	var wrong []error
	for i, c := range file.Cases {
		if c.Session == "" {
			for _, text := range c.Inputs {
				list[i].Exchanges = append(list[i].Exchanges, eval.Exchange{Input: text})
			}
			continue
		}
		raw, err := os.ReadFile(c.Session)
		if err == nil {
			list[i], err = eval.Read(bytes.NewReader(raw))
		}
		if line, ok := errors.AsType[*eval.LineError](err); ok {
			err = fmt.Errorf("%s:%d: %w", c.Session, line.Line, line.Err)
		} else if err != nil {
			err = fmt.Errorf("%s: %w", c.Session, err)
		} else if list[i].Forked != 0 {
			err = fmt.Errorf("%s: this is a fork; the conversation that it continues is not in the file", c.Session)
		}
		wrong = append(wrong, err)
	}
	return list, errors.Join(wrong...)
}

// An evaluation runs the cases of a file.
type evaluation struct {
	file       *eval.File
	recordings []eval.Recording // one for each case
	first      player           // the connection and the flags; each run gets a copy
	program    *program
	report     *eval.Report

	mu   sync.Mutex // guards left and standard error
	left int
}

// run runs a case once.
func (e *evaluation) run(ctx context.Context, i int) eval.RunReport {
	c, recorded := e.file.Cases[i], e.recordings[i]
	play := e.first
	play.source = recorded
	flags := play.run
	play.run = eval.Run{Agent: cmp.Or(flags.Agent, c.Run.Agent), Model: cmp.Or(flags.Model, c.Run.Model),
		Prompt: cmp.Or(flags.Prompt, c.Run.Prompt)}
	replayed, err := play.play(ctx, recorded.Exchanges)
	r := eval.RunReport{Checks: []eval.Result{}, Exchanges: replayed.Exchanges}
	for n, x := range replayed.Exchanges {
		if err == nil && x.Outcome != parley.Completed {
			err = fmt.Errorf("input %d: the run ended as %s. %s", n+1, x.Outcome, x.Message)
		}
	}
	for _, check := range c.Checks {
		if err != nil {
			break
		}
		var result eval.Result
		if result, err = check.Evaluate(replayed.Exchanges, e.judge(ctx)); err == nil {
			r.Checks = append(r.Checks, result)
		}
	}
	if err != nil {
		r.Error = describe(err)
	}
	e.progress(c.Name, r)
	return r
}

// judge returns a judge that asks the judging model, each time in a new session.
func (e *evaluation) judge(ctx context.Context) eval.Judge {
	return func(criterion string, x eval.Exchange) (bool, string, error) {
		play := e.first
		play.live, play.source = false, eval.Recording{}
		play.run = eval.Run{Model: e.file.Judge, Prompt: eval.JudgePrompt}
		said, err := play.play(ctx, []eval.Exchange{{Input: eval.JudgeMessage(rand.Text(), criterion, x)}})
		if err != nil {
			return false, "", fmt.Errorf("the judge could not be asked: %w", err)
		}
		answer := said.Exchanges[0]
		if answer.Outcome != parley.Completed {
			return false, "", fmt.Errorf("the judge did not answer: %s", answer.Message)
		}
		return eval.Verdict(answer.Answer)
	}
}

// progress prints that a run has ended.
func (e *evaluation) progress(name string, r eval.RunReport) {
	word := "passed"
	for _, check := range r.Checks {
		if !check.Passed {
			word = "failed"
		}
	}
	if r.Error != "" {
		word = "error"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.left--
	fmt.Fprintf(e.program.stderr, "%s: %s (%d left)\n", visible(name), word, e.left)
}

// print prints the results, and writes the file that --junit names.
func (c *evalCommand) print(p *program, r *eval.Report) error {
	if c.JUnit != "" {
		var raw bytes.Buffer
		if err := r.JUnit(&raw); err != nil {
			return err
		}
		if err := os.WriteFile(c.JUnit, raw.Bytes(), 0o666); err != nil {
			return err
		}
	}
	if err := (listFlags{JSON: c.JSON}).print(p, r, r.Table(), ""); err != nil || c.JSON {
		return err
	}
	for _, line := range r.Failures() {
		if _, err := fmt.Fprintln(p.stdout, visible(clip(line, 500))); err != nil {
			return err
		}
	}
	return nil
}
