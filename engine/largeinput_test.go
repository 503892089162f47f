package engine

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"parley"
	"parley/port"
)

// TestLargeInputsAreStoredAFewAtATime checks that of many large inputs at once
// some wait and the others are refused, and that small inputs pass all of them.
func TestLargeInputsAreStoredAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var storing, most atomic.Int64
		hangs := make(chan struct{})
		r := newRig(t, func(c *Config) {
			c.Store = &rough{append: func(b port.Batch) error {
				for _, in := range all[parley.InputReceived](b.Events) {
					if len(in.Content) >= largeBytes {
						most.Store(max(most.Load(), storing.Add(1)))
						<-hangs
						storing.Add(-1)
					}
				}
				return nil
			}}
		})
		large := "say x" + strings.Repeat(" ", largeBytes)
		var stored, refused atomic.Int64
		for range largeAtOnce + largeWaiting + 7 {
			id := r.open()
			go func() {
				switch _, err := r.try(id, parley.SubmitInput{Content: large}); {
				case err == nil:
					stored.Add(1)
				case parley.CodeOf(err) == parley.CodeOverloaded:
					refused.Add(1)
				default:
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		if storing.Load() != largeAtOnce || refused.Load() != 7 {
			t.Errorf("%d are being stored, %d were refused", storing.Load(), refused.Load())
		}
		id := r.open()
		r.say(id, "say hello")
		r.finished(id, 1)
		close(hangs)
		synctest.Wait()
		if stored.Load() != largeAtOnce+largeWaiting || most.Load() != largeAtOnce || r.large.all.Load() != 0 {
			t.Errorf("%d were stored, %d at a time, %d are left", stored.Load(), most.Load(), r.large.all.Load())
		}
	})
}
