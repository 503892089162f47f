package acp

import (
	"fmt"
	"strconv"
	"strings"

	"parley"
)

// Prompt returns the text of a prompt.
func Prompt(blocks []Block) (string, *Error) {
	var parts []string
	for _, b := range blocks {
		switch {
		case b.Type == "text":
			parts = append(parts, b.Text)
		case b.Type == "resource_link":
			parts = append(parts, fmt.Sprintf("[%s](%s)", b.Name, b.URI))
		case b.Type == "resource" && b.Resource != nil && b.Resource.Text != "":
			parts = append(parts, fmt.Sprintf("<file uri=%q>\n%s\n</file>", b.Resource.URI, b.Resource.Text))
		default:
			return "", &Error{CodeInvalid, fmt.Sprintf("A prompt has text and links to files; %.40q is not possible.",
				b.Type), nil}
		}
	}
	text := strings.Join(parts, "\n")
	if parley.IsBlank(text) {
		return "", &Error{CodeInvalid, "The prompt is empty.", &ErrorData{parley.CodeEmpty}}
	}
	return text, nil
}

// Ids of card options.
const (
	optionAllow   = "allow"
	optionAlways  = "always"
	optionSimilar = "similar"
	optionDeny    = "deny"
	optionStop    = "stop"
	answerPrefix  = "answer-"
)

func approvalOptions(b parley.ApprovalRequested) []Option {
	options := []Option{{optionAllow, "Allow once", "allow_once"}, {optionAlways, "Always allow exactly this",
		"allow_always"}}
	if b.Similar.Text != "" {
		options = append(options, Option{optionSimilar, "Always allow " + b.Similar.Text, "allow_always"})
	}
	return append(options, Option{optionDeny, "Deny", "reject_once"}, Option{optionStop, "Deny and stop the run",
		"reject_always"})
}

// answerOptions returns the answers to choose from, or nil if the questions cannot be answered by choosing one option.
func answerOptions(questions []parley.Question) (options []Option) {
	if len(questions) != 1 || questions[0].MultiSelect {
		return nil
	}
	for i, o := range questions[0].Options {
		options = append(options, Option{answerPrefix + strconv.Itoa(i), o.Label, "allow_once"})
	}
	return options
}

var resolutionOptions = []Option{{string(parley.Rerun), "Run it again", "allow_once"},
	{string(parley.MarkDone), "It was done", "allow_once"}, {string(parley.Abandon), "Stop the run", "reject_once"}}

// An Answer is a person's choice: one of Decision, Answers and Resolution is set.
type Answer struct {
	Decision   parley.Decision
	Scope      parley.GrantScope // for AllowAlways only
	Answers    [][]string
	Resolution parley.Resolution
}

// Choice returns the answer that an option of the card stands for. It returns false if the card has no such option.
func (a Ask) Choice(option string) (Answer, bool) {
	if a.Ask == nil {
		return Answer{}, false
	}
	for _, o := range a.Ask.Options {
		if o.ID != option {
			continue
		}
		switch {
		case a.Type == "question":
			return Answer{Answers: [][]string{{o.Name}}}, true
		case a.Type == "tool_call_unknown":
			return Answer{Resolution: parley.Resolution(option)}, true
		case option == optionSimilar:
			return Answer{Decision: parley.AllowAlways, Scope: parley.ScopeSimilar}, true
		}
		return Answer{Decision: parley.Decision(option)}, true
	}
	return Answer{}, false
}

// Refused converts a refusal of the server to an error for the editor.
func Refused(code parley.Code, message string) *Error {
	e := &Error{CodeInternal, message, nil}
	if code != "" {
		e.Data = &ErrorData{code}
	}
	switch code {
	case parley.CodeNotFound:
		e.Code = CodeNotFound
	case parley.CodeUnauthenticated:
		e.Code = CodeAuth
	case parley.CodeInvalid, parley.CodeEmpty, parley.CodeTooLarge:
		e.Code = CodeInvalid
	}
	return e
}
