package pacing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !Sleep(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("Sleep was to wait for an hour, and waited for %s", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if Sleep(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("Sleep was to end with its context after a minute, and waited for %s", time.Since(began))
		}
	})
}

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Second)
		defer cancel()
		began, calls := time.Now(), 0
		Every(ctx, time.Minute, func() {
			if calls++; time.Since(began) != time.Duration(calls)*time.Minute {
				t.Errorf("call %d was made after %s", calls, time.Since(began))
			}
		})
		if calls != 3 {
			t.Errorf("%d calls were made in three minutes", calls)
		}
	})
}
