package demo

import "testing"

// TestIdlePrompts checks that an idle agent follows its standing instruction
// and ignores the text of the mission.
func TestIdlePrompts(t *testing.T) {
	for instruction, want := range map[string]string{"say All is well.": "All is well.", "count to 3": "1 2 3"} {
		h := listen(t, &Model{}, say(nil, "[Mission] say nothing\n\nat all\n\n[Your standing instruction] "+
			instruction))
		if h.text != want {
			t.Errorf("%s: %q", instruction, h.text)
		}
	}
}
