package port

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Rate limits how often something may happen. The zero Rate is no limit.
type Rate struct {
	N   int
	Per time.Duration
}

// UnmarshalText parses "10/minute", per second, minute or hour, or "off".
func (r *Rate) UnmarshalText(text []byte) error {
	if string(text) == "off" {
		*r = Rate{}
		return nil
	}
	number, unit, _ := strings.Cut(string(text), "/")
	n, err := strconv.Atoi(number)
	for _, u := range rateUnits {
		if err != nil || u.name != unit {
			continue
		}
		if n < 1 || n > maxRate {
			return fmt.Errorf("%q makes no sense as a limit; use 1 to %d, or off for none", text, maxRate)
		}
		*r = Rate{n, u.per}
		return nil
	}
	return fmt.Errorf("%q is no rate; write N/second, N/minute, N/hour or off", text)
}

func (r Rate) String() string {
	for _, u := range rateUnits {
		if u.per == r.Per {
			return strconv.Itoa(r.N) + "/" + u.name
		}
	}
	return "off"
}

var rateUnits = []struct {
	name string
	per  time.Duration
}{{"second", time.Second}, {"minute", time.Minute}, {"hour", time.Hour}}

// maxRate bounds the size of a bucket.
const maxRate = 1_000_000
