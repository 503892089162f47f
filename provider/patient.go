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
	"parley/pacing"
	"parley/port"
)

// Limits of the retries with one model, before the first chunk of its answer.
const (
	attempts = 3
	budget   = 5 * time.Second
	pause    = 500 * time.Millisecond // doubled for each retry
)

// Patient is the only place where model calls are retried. It tries the same
// model up to three times within about five seconds, if another try may help,
// and waits as long as the vendor asks. Then it tries the request's fallback
// models. All of this happens only before the first chunk of an answer. After
// that, the caller has passed on a part of the answer, so it gets the error.
//
// Patient passes calls on at the end of the turn. Until then the caller does
// not know them, so a turn that has only asked for calls can be retried.
func Patient(model port.Model, log *slog.Logger) port.Model { return patient{model, log} }

type patient struct {
	model port.Model
	log   *slog.Logger
}

// An ending is the result of one attempt.
type ending struct {
	err  error
	said bool // a chunk was passed on
	left bool // the caller has stopped reading

	attempt int // number of the attempt
}

func (p patient) Stream(ctx context.Context, req port.ModelRequest) iter.Seq2[port.ModelChunk, error] {
	return func(yield func(port.ModelChunk, error) bool) {
		models := []string{req.Model}
		for _, name := range req.Fallback {
			if !slices.Contains(models, name) {
				models = append(models, name)
			}
		}
		for i, name := range models {
			attempt := req
			attempt.Model, attempt.Fallback = name, nil
			end := p.tryModel(ctx, attempt, yield)
			switch {
			case end.left || end.err == nil:
				return
			case end.said || i == len(models)-1 || ctx.Err() != nil || !anotherMayHelp(end.err):
				if end.said || ctx.Err() != nil || !againMayHelp(end.err) ||
					yield(port.ModelChunk{Retry: gaveUp(end)}, nil) {
					yield(port.ModelChunk{}, end.err)
				}
				return
			}
			p.log.Warn("another model is asked", "instead of", name, "now", models[i+1], "error", end.err)
			if !yield(port.ModelChunk{FellBack: &parley.FellBack{Preferred: req.Model, Actual: models[i+1],
				Reason: parley.MessageOf(end.err)}}, nil) {
				return
			}
		}
	}
}

// tryModel tries one model. No attempt begins later than budget after the
// first, because a slow failure would be slow again. The caller gets the report
// of a retry at the start of the pause before it.
func (p patient) tryModel(ctx context.Context, req port.ModelRequest, yield func(port.ModelChunk, error) bool) ending {
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
		delay := max(wait+rand.N(wait/5), asked) // random, so that clients do not retry at the same time
		if time.Since(began)+delay > budget {
			return end
		}
		next := time.Now().Add(delay)
		end.left = !yield(port.ModelChunk{Retry: retrying(end)}, nil)
		if end.left || !pacing.Sleep(ctx, time.Until(next)) {
			return end
		}
		p.log.Info("a model is tried again", "model", req.Model, "attempt", attempt+1, "error", end.err)
		wait *= 2
	}
}

func (p patient) once(ctx context.Context, req port.ModelRequest, yield func(port.ModelChunk, error) bool) (
	end ending) {
	var calls []port.ModelChunk
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

// anotherMayHelp reports whether another model may succeed: not if the request
// is wrong, or this server has the problem.
func anotherMayHelp(err error) bool {
	switch parley.CodeOf(err) {
	case parley.CodeInvalid, parley.CodeTooLarge, parley.CodeInternal:
		return false
	}
	return true
}

// retrying returns the report of the retry after a failed attempt.
func retrying(end ending) *parley.Retrying {
	problem := strings.TrimSuffix(parley.MessageOf(end.err), ".")
	if e, ok := errors.AsType[*parley.Error](end.err); ok && e.Problem != "" {
		problem = e.Problem
	}
	return &parley.Retrying{Code: parley.CodeOf(end.err), Problem: problem, Attempt: end.attempt + 1, Of: attempts}
}

// gaveUp returns the report that the failed attempt was the last. If there was
// no answer at all, it advises users to check their own network first.
func gaveUp(end ending) *parley.Retrying {
	r := retrying(end)
	r.Attempt, r.GaveUp = end.attempt, true
	if e, ok := errors.AsType[*parley.Error](end.err); ok && e.Problem != "" && e.Vendor == nil {
		r.Advice = "Please check your connection and try again."
	}
	return r
}
