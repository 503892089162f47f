package provider

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/port"
)

// How long it is tried to get a first word out of one model.
const (
	attempts = 3
	budget   = 5 * time.Second
	pause    = 500 * time.Millisecond // doubled each time
)

// Patient is the one place where models are tried again: the same model up to
// three times within about five seconds, for as long as that may help and as the
// vendor asks to wait, then the next of the request's fallback models. All of it
// is free until the model has said something. After that only who has shown it
// knows what to do, and the error is theirs.
//
// Calls are handed on with the end of the turn: until then nobody has seen them,
// and a turn that breaks off can be had again.
func Patient(model port.Model, log *slog.Logger) port.Model { return patient{model, log} }

type patient struct {
	model port.Model
	log   *slog.Logger
}

// An ending is what became of one attempt.
type ending struct {
	err  error
	said bool // something was heard of it
	left bool // the listener has left

	attempt int // its number
}

func (p patient) Stream(ctx context.Context, req port.ModelRequest) iter.Seq2[port.Said, error] {
	return func(yield func(port.Said, error) bool) {
		models := []string{req.Model}
		for _, name := range req.Fallback {
			if !slices.Contains(models, name) {
				models = append(models, name)
			}
		}
		for i, name := range models {
			attempt := req
			attempt.Model, attempt.Fallback = name, nil
			end := p.patiently(ctx, attempt, yield)
			switch {
			case end.left || end.err == nil:
				return
			case end.said || i == len(models)-1 || ctx.Err() != nil || !anotherMayHelp(end.err):
				if end.said || ctx.Err() != nil || !againMayHelp(end.err) ||
					yield(port.Said{Retry: gaveUp(end)}, nil) {
					yield(port.Said{}, end.err)
				}
				return
			}
			p.log.Warn("another model is asked", "instead of", name, "now", models[i+1], "error", end.err)
			if !yield(port.Said{FellBack: &parley.FellBack{Preferred: req.Model, Actual: models[i+1],
				Reason: parley.MessageOf(end.err)}}, nil) {
				return
			}
		}
	}
}

// patiently tries one model. No attempt begins later than the budget after the
// first: one that failed slowly would fail slowly again. The listener is told of
// each further attempt while the pause before it runs.
func (p patient) patiently(ctx context.Context, req port.ModelRequest, yield func(port.Said, error) bool) ending {
	began := time.Now()
	wait := pause
	for attempt := 1; ; attempt++ {
		end := p.once(ctx, req, yield)
		end.attempt = attempt
		if end.err == nil || end.said || end.left || attempt == attempts || !againMayHelp(end.err) {
			return end
		}
		asked := time.Duration(0)
		if e, ok := errors.AsType[*parley.Error](end.err); ok {
			asked = e.RetryAfter
		}
		delay := max(wait+rand.N(wait/5), asked) // not all at the same moment
		if time.Since(began)+delay > budget {
			return end
		}
		timer := time.NewTimer(delay)
		if end.left = !yield(port.Said{Retry: retrying(end)}, nil); end.left || !waited(ctx, timer) {
			return end
		}
		p.log.Info("a model is tried again", "model", req.Model, "attempt", attempt+1, "error", end.err)
		wait *= 2
	}
}

func (p patient) once(ctx context.Context, req port.ModelRequest, yield func(port.Said, error) bool) (end ending) {
	var calls []port.Said
	for said, err := range p.model.Stream(ctx, req) {
		switch {
		case err != nil:
			end.err = err
			return end
		case said.Call != nil:
			calls = append(calls, said)
			continue
		case said.Done != nil:
			for _, call := range calls {
				if !yield(call, nil) {
					end.left = true
					return end
				}
			}
			end.left = !yield(said, nil)
			return end
		}
		end.said = true
		if !yield(said, nil) {
			end.left = true
			return end
		}
	}
	end.err = parley.Errorf(parley.CodeUnavailable, "The model stopped in the middle of its answer.")
	return end
}

func againMayHelp(err error) bool {
	code := parley.CodeOf(err)
	return code == parley.CodeOverloaded || code == parley.CodeUnavailable
}

// anotherMayHelp: unless it is the request that is wrong, or this server.
func anotherMayHelp(err error) bool {
	switch parley.CodeOf(err) {
	case parley.CodeInvalid, parley.CodeTooLarge, parley.CodeInternal:
		return false
	}
	return true
}

// retrying announces the attempt after one that failed.
func retrying(end ending) *parley.Retrying {
	problem := strings.TrimSuffix(parley.MessageOf(end.err), ".")
	if e, ok := errors.AsType[*parley.Error](end.err); ok && e.Problem != "" {
		problem = e.Problem
	}
	return &parley.Retrying{Code: parley.CodeOf(end.err), Problem: problem, Attempt: end.attempt + 1, Of: attempts}
}

// gaveUp says that the failed attempt was the last. If there was no answer at
// all, people can look at their own network first.
func gaveUp(end ending) *parley.Retrying {
	r := retrying(end)
	r.Attempt, r.GaveUp = end.attempt, true
	if e, ok := errors.AsType[*parley.Error](end.err); ok && e.Problem != "" && e.Vendor == nil {
		r.Advice = "Please check your connection and try again."
	}
	return r
}

// waited reports whether the timer has fired, and not ctx ended before.
func waited(ctx context.Context, timer *time.Timer) bool {
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
