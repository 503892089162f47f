package dialect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"parley"
)

// TestLogFailure: only faults of the server are logged.
func TestLogFailure(t *testing.T) {
	for _, c := range []struct {
		err    error
		logged bool
	}{
		{errors.New("the disk is full"), true},
		{parley.Errorf(parley.CodeInvalid, "content is missing"), false},
		{parley.Errorf(parley.CodeStopped, "the agent is stopped"), false},
		{fmt.Errorf("reading the log: %w", context.Canceled), false}, // the client has left
	} {
		var out strings.Builder
		LogFailure(slog.New(slog.NewTextHandler(&out, nil)), c.err)
		if (out.Len() > 0) != c.logged {
			t.Errorf("%v: logged %q", c.err, out.String())
		}
	}
}
