package engine

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/port"
)

// TestToolServersAreSwitchedOff checks that a server that is off is not offered from the next turn on. A call of its
// tools is blocked, even one that a person allowed meanwhile. The choice outlives a restart, and sub-agents share it.
func TestToolServersAreSwitchedOff(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Tools = &lent{t: t} })
	var mu sync.Mutex
	var offered []bool
	look := func(q port.ModelRequest) {
		mu.Lock()
		defer mu.Unlock()
		offered = append(offered,
			slices.ContainsFunc(q.Tools, func(s parley.ToolSpec) bool { return s.Name == "files__read" }))
	}
	r.puppet.seen = look
	told := func() []bool {
		mu.Lock()
		defer mu.Unlock()
		list := offered
		offered = nil
		return list
	}
	id := r.open()
	r.say(id, "say hi")
	r.finished(id, 1)
	if got := told(); !slices.Equal(got, []bool{true}) {
		t.Errorf("offered %v", got)
	}
	off := func(names ...string) { t.Helper(); r.do(id, parley.ChooseToolServers{Off: names}) }
	off("files", "files", "a-server")
	off("a-server", "files") // changes nothing
	if list, err := r.ServersOff(t.Context(), ann, id); err != nil || strings.Join(list, " ") != "a-server files" {
		t.Errorf("%q, %v", list, err)
	}
	r.restart(false)
	r.puppet.seen = look
	r.say(id, "call files__read x | say done")
	log := r.finished(id, 2)
	if got := told(); len(got) != 2 || slices.Contains(got, true) {
		t.Errorf("offered %v", got)
	}
	if blocked := all[parley.ToolCallBlocked](log); len(blocked) != 1 || blocked[0].Reason != whyOff {
		t.Errorf("%+v", blocked)
	}
	if n := len(all[parley.ToolServersChosen](r.log(id))); n != 1 {
		t.Errorf("chosen %d times", n)
	}
	r.say(id, "call delegate helper: say back | say thanks")
	child := children(r.until(id, "the child is there", seen[parley.ChildSpawned](1)))[0]
	opened := all[parley.SessionOpened](r.below(child, "it is open", seen[parley.SessionOpened](1)))[0]
	if strings.Join(opened.Off, " ") != "a-server files" {
		t.Errorf("the sub-agent has %q off", opened.Off)
	}
	r.finished(id, 3)
	if _, err := r.try(id, parley.ChooseToolServers{Off: []string{"Not A Name"}}); parley.CodeOf(err) != parley.CodeInvalid {
		t.Errorf("%v", err)
	}
	off()
	told()
	r.say(id, "say hi again")
	r.finished(id, 4)
	if got := told(); !slices.Equal(got, []bool{true}) {
		t.Errorf("offered %v", got)
	}
	r.sound(id)
}
