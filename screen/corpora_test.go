package screen

import (
	"bufio"
	"cmp"
	"encoding/json"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"
)

// corpus returns the path of a file of the third-party test data.
func corpus(t testing.TB, parts ...string) string {
	t.Helper()
	root := cmp.Or(os.Getenv("PARLEY_CORPORA"), filepath.Join("..", "..", "shared", "data"))
	name := filepath.Join(append([]string{root}, parts...)...)
	if _, err := os.Stat(name); err != nil {
		t.Skip("no third-party data here: ", err)
	}
	return name
}

// A sample is a labelled prompt.
type sample struct {
	Set, Label, Text string
	Half             int // 0 or 1; the rules were written by looking at half 0 only
}

func samples(t testing.TB) (all []sample) {
	f, err := os.Open(corpus(t, "injection", "train.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		h := fnv.New32a()
		h.Write([]byte(s.Text))
		s.Half = int(h.Sum32() >> 7 & 1)
		all = append(all, s)
	}
	if err := lines.Err(); err != nil || len(all) < 2000 {
		t.Fatalf("%d samples (%v)", len(all), err)
	}
	return all
}
