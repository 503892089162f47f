package tool

import (
	"testing"

	"parley"
)

func TestDelegate(t *testing.T) {
	b := newBox(t, t.TempDir())
	v := b.Judge(parley.Agent{}, "delegate", `{"agent_id":"explorer","task":"Look around."}`)
	if v.Kind != parley.VerdictChild || v.Agent != "explorer" || v.Task != "Look around." {
		t.Errorf("%+v", v)
	}
	for _, bad := range []string{`{}`, `{"agent_id":"x"}`, `{"agent_id":"","task":"y"}`, `{"agent_id":"x","task":" "}`,
		`{"agent_id":"x","task":"y","z":1}`} {
		if v := b.Judge(parley.Agent{}, "delegate", bad); v.Kind != parley.VerdictBlock {
			t.Errorf("%s: %+v", bad, v)
		}
	}
}
