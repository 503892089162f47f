package port

import "testing"

// TestShareKeepsAFewValues: a value that fits is made once, until there are too many.
func TestShareKeepsAFewValues(t *testing.T) {
	i, made := &Item{}, 0
	value := func(n int) any {
		return i.Share(func(v any) bool { return v == n }, func() any { made++; return n })
	}
	for n := range 2 * maxShared {
		if first, second := value(n), value(n); first != n || second != n {
			t.Errorf("%d is another value", n)
		}
	}
	if want := maxShared + 2*maxShared; made != want {
		t.Errorf("%d values were made, not %d", made, want)
	}
}
