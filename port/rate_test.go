package port

import (
	"testing"
	"time"
)

func TestRates(t *testing.T) {
	for _, c := range []struct {
		text string
		want Rate
		ok   bool
	}{
		{"10/minute", Rate{10, time.Minute}, true},
		{"1/second", Rate{1, time.Second}, true},
		{"1000000/hour", Rate{1000000, time.Hour}, true},
		{"off", Rate{}, true},
		{"0/minute", Rate{}, false}, {"-1/minute", Rate{}, false}, {"1000001/hour", Rate{}, false},
		{"99999999999999999999/hour", Rate{}, false},
		{"", Rate{}, false}, {"10", Rate{}, false}, {"10/", Rate{}, false}, {"/minute", Rate{}, false},
		{"10/day", Rate{}, false},
		{"10/minutes", Rate{}, false}, {"10 / minute", Rate{}, false}, {"1.5/minute", Rate{}, false},
		{"OFF", Rate{}, false}, {"10/minute/2", Rate{}, false},
	} {
		var got Rate
		if err := got.UnmarshalText([]byte(c.text)); (err == nil) != c.ok || got != c.want {
			t.Errorf("%q is %v, %v", c.text, got, err)
		} else if c.ok && got.String() != c.text {
			t.Errorf("%q is written %q", c.text, got)
		}
	}
}
