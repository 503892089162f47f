package postgres

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"parley/store/postgres/pgtest"
)

// TestMain stops the server after the check for leaks. So goroutines that end
// with their connection must have ended because the store closed it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.Stop()
		os.Exit(code)
	}))
}
