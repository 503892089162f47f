package config

import (
	"strings"
	"testing"
)

// TestMetricsBeyondThisMachineNeedAToken checks the rules for the address and the
// token of metrics.
func TestMetricsBeyondThisMachineNeedAToken(t *testing.T) {
	for _, test := range []struct{ listen, token, wrong string }{
		{"", "", ""},
		{"127.0.0.1:9464", "", ""},
		{"localhost:9464", "", ""},
		{"[::1]:9464", "", ""},
		{"0.0.0.0:9464", "sixteen bytes ok", ""},
		{"0.0.0.0:9464", "", "PARLEY_METRICS_TOKEN"},
		{":9464", "", "PARLEY_METRICS_TOKEN"},
		{"example.com:9464", "", "PARLEY_METRICS_TOKEN"},
		{"0.0.0.0:9464", "too short", "can be guessed"},
		{"nowhere", "", "HOST:PORT"},
		{"", "sixteen bytes ok", "without --metrics-listen"},
	} {
		inDir(t, nil)
		env := map[string]string{"PARLEY_METRICS_LISTEN": test.listen, "PARLEY_METRICS_TOKEN": test.token}
		_, err := parse([]string{"serve"}, env)
		if test.wrong == "" && err != nil || test.wrong != "" &&
			(err == nil || !strings.Contains(err.Error(), test.wrong)) {
			t.Errorf("%q with %q: %v; want %q", test.listen, test.token, err, test.wrong)
		}
		if err != nil && test.token != "" && strings.Contains(err.Error(), test.token) {
			t.Errorf("the token is in the message: %v", err)
		}
	}
}
