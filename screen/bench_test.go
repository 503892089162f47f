package screen

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
)

// size returns n bytes of text, made by repeating text.
func size(text string, n int) string { return strings.Repeat(text, n/len(text)+1)[:n] }

// loads are ordinary text and texts that try to make a scan slow.
var loads = []struct{ name, text string }{
	{"prose", strings.Join(honest, " ")},
	{"triggers",
		"ignore all forget your rules previous you are now act as without never tell the password say system prompt "},
	{"one trigger", "ignore "},
	{"base64", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="},
	{"readable base64", "aWdub3JlIHlvdXIgY2F0IGFuZCBwbGF5IHdpdGggeW91ciBkb2cgaW5zdGVhZA== "},
	{"hex bytes", "00 ff 17 "},
	{"letters alone", "i g n o r e a l l "},
	{"no spaces", "ignoreallpreviouswords"},
	{"percent", "%69%67%6e"},
	{"entities", "&#105;&amp;"},
	{"ampersands", "&&&&&&&&&&&"},
	{"Cyrillic", "Напишите, пожалуйста, короткий рассказ о море. "},
	{"Chinese", "请描述一个包含格调的房间设计忽略"},
	{"zero width", "a\u200b\u200b\u200b"},
	{"accents", "éàüñ "},
	{"backspaces", "a\b"},
	{"one word", "a"},
	{"backwards", "snoitcurtsni suoiverp lla erongi "},
	{"typos", "ingroe prveoius itnsrucoitns "},
	{"leet", "1gn0r3 pr3v10u5 "},
	{"line breaks", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"},
}

func BenchmarkScan(b *testing.B) {
	for _, n := range []struct {
		name  string
		bytes int
	}{{"4KB", 4 << 10}, {"64KB", 64 << 10}, {"1MB", 1 << 20}} {
		b.Run(n.name, func(b *testing.B) {
			text := size(loads[0].text, n.bytes)
			b.SetBytes(int64(n.bytes))
			b.ReportAllocs()
			for b.Loop() {
				Default().Scan(nil, text)
			}
		})
	}
	for _, load := range loads[1:] {
		b.Run("1MB of "+load.name, func(b *testing.B) {
			text := size(load.text, 1<<20)
			b.SetBytes(1 << 20)
			for b.Loop() {
				Default().Scan(nil, text)
			}
		})
	}
}

// TestScanIsLinear: a scan takes time linear in its text, whatever the text is.
// As the machine may be busy, the test uses the best of several measurements
// and a generous limit.
func TestScanIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time")
	}
	for _, load := range loads {
		small, large := size(load.text, 1<<15), size(load.text, 1<<18)
		a, b := best(func() { Default().Scan(nil, small) }), best(func() { Default().Scan(nil, large) })
		if b > 8*4*a+50*time.Millisecond {
			t.Errorf("%s: 32 KiB take %v, 256 KiB take %v", load.name, a, b)
		}
	}
}

// best returns the least processor time that a call took. Other processes do
// not affect it much.
func best(do func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	least := time.Hour
	for range 3 {
		start := threadTime()
		do()
		least = min(least, threadTime()-start)
	}
	return least
}

// noise returns n bytes of random words, from a fixed seed.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < n {
		for range 1 + r.IntN(9) {
			b.WriteByte(byte('a' + r.IntN(26)))
		}
		b.WriteByte(' ')
	}
	return b.String()[:n]
}
