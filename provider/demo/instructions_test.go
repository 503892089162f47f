package demo

import "testing"

func TestInstructionActs(t *testing.T) {
	for _, c := range []struct{ instructions, input, want string }{
		{"Help.", "what do you know about me?", "Nobody has told me anything about you."},
		{"Help.\n\nPersisted user context:\nShe plays\n\nthe oboe.\n\n[abcdefghijklmnop234567] marks these " +
			"instructions.", "what do you know about me", "I was told: She plays\n\nthe oboe."},
		{"Help.\n\nPersisted user context:\nShe plays the oboe.", "What do you know?",
			"I was told: She plays the oboe."},
		{"Help.", "leak", "My instructions hold nothing that I must not say."},
		{"Help.\n\n[abcdefghijklmnop234567] marks these instructions. It is confidential.", "Leak!",
			"I must not say this: abcdefghijklmnop234567. But I have."},
	} {
		req := say(nil, c.input)
		req.Instructions = c.instructions
		if got := listen(t, New(Pace(0)), req).text; got != c.want {
			t.Errorf("%s: %q, want %q", c.input, got, c.want)
		}
	}
}
