package config

import (
	"strings"
	"testing"
)

func TestSettingsOfSeveralNodes(t *testing.T) {
	inDir(t, nil)
	key := "--server-key=" + strings.Repeat("k", 32)
	database, nats := "--database-url=postgres://db/parley", "--nats-url=nats://someone:hidden@nats:4222"
	for _, x := range []struct {
		args []string
		want string // a part of the error
	}{
		{[]string{"serve", nats, database, key}, ""},
		{[]string{"serve", nats, key}, "--database-url"},
		{[]string{"serve", nats, database}, ""},
	} {
		s, err := parse(x.args, nil)
		if err == nil {
			err = s.Check()
		}
		if (err == nil) != (x.want == "") || err != nil && (!strings.Contains(err.Error(), x.want) ||
			strings.Contains(err.Error(), "hidden")) {
			t.Errorf("%q: %v", x.args, err)
		}
	}
}
