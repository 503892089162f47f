package demo

import "testing"

// An idle agent does what its standing instruction says, of which the mission is
// no part.
func TestIdlePrompts(t *testing.T) {
	for instruction, want := range map[string]string{"say All is well.": "All is well.", "count to 3": "1 2 3"} {
		h := listen(t, &Model{}, say(nil, "[Mission] say nothing\n\nat all\n\n[Your standing instruction] "+
			instruction))
		if h.text != want {
			t.Errorf("%s: %q", instruction, h.text)
		}
	}
}
