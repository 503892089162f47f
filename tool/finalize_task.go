package tool

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"parley"
	"parley/workspace"
)

//go:embed finalize_task.md
var finalizeTaskDescription string

//go:embed finalize_task.json
var finalizeTaskSchema string

// The lists are present even if they are empty, because clients show them.
type finalizeTaskArguments struct {
	Title              string   `json:"title"`
	Summary            string   `json:"summary"`
	UserStories        []string `json:"user_stories"`
	AcceptanceCriteria []string `json:"acceptance_criteria"`
}

// finalizeTask only reports the finished work, in a form that clients know.
var finalizeTask = define("finalize_task", finalizeTaskDescription, finalizeTaskSchema,
	func(args finalizeTaskArguments) (action, error) {
		switch {
		case parley.IsBlank(args.Title):
			return action{}, errors.New("title: it is blank")
		case parley.IsBlank(args.Summary):
			return action{}, errors.New("summary: it is blank")
		}
		if args.UserStories == nil {
			args.UserStories = []string{}
		}
		if args.AcceptanceCriteria == nil {
			args.AcceptanceCriteria = []string{}
		}
		result, err := json.Marshal(struct {
			Type   string                `json:"type"`
			Packet finalizeTaskArguments `json:"packet"`
		}{"finalize_task", args})
		result = bytes.ReplaceAll(result, []byte("\x7f"), []byte(`\u007f`)) // or the output would write it as \x7f
		switch {
		case err != nil:
			return action{}, err
		case len(result) > outputLimit: // cutting it would make it invalid JSON
			return action{}, fmt.Errorf("expected at most %d bytes altogether", outputLimit)
		}
		return action{class: parley.Pure, look: func(_ context.Context, _ *workspace.View, out io.Writer) error {
			_, err := out.Write(result)
			return err
		}}, nil
	})
