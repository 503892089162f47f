package dialect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
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

// TestBodiesInOtherEncodings: a body that is not in UTF-8 is refused, because its characters would be replaced.
func TestBodiesInOtherEncodings(t *testing.T) {
	for body, want := range map[string]bool{"{\"text\":\"na\u00efve\"}": true, "{\"text\":\"na\xefve\"}": false} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if _, err := ReadObject(httptest.NewRecorder(), r, 100); (err == nil) != want ||
			err != nil && parley.CodeOf(err) != parley.CodeInvalid {
			t.Errorf("%q: %v", body, err)
		}
	}
}
