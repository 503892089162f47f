package tool

import (
	_ "embed"
	"time"

	"parley"
)

var (
	//go:embed schedule_follow_up.md
	scheduleFollowUpDescription string
	//go:embed schedule_follow_up.json
	scheduleFollowUpSchema string
	//go:embed cancel_follow_ups.md
	cancelFollowUpsDescription string
	//go:embed cancel_follow_ups.json
	cancelFollowUpsSchema string
)

type scheduleFollowUpArguments struct {
	Delay   int64  `json:"delay_seconds"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Neither is performed: their effect is in the log, with the call. The session
// limits how many follow-ups there may be.
var (
	scheduleFollowUp = define("schedule_follow_up", scheduleFollowUpDescription, scheduleFollowUpSchema,
		func(args scheduleFollowUpArguments) (action, error) {
			f := parley.FollowUp{Delay: time.Duration(args.Delay) * time.Second, Reason: parley.CleanText(args.Reason),
				Message: parley.CleanText(args.Message)}
			return action{class: parley.Idempotent, followUp: &f}, f.Check()
		})
	cancelFollowUps = define("cancel_follow_ups", cancelFollowUpsDescription, cancelFollowUpsSchema,
		func(struct{}) (action, error) {
			return action{class: parley.Idempotent, noFollowUps: true}, nil
		})
)

// unasked reports whether a tool is offered only to agents with autonomy
// enabled.
func unasked(name string) bool { return name == scheduleFollowUp.Name || name == cancelFollowUps.Name }
