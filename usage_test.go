package parley

import (
	"reflect"
	"testing"
)

// TestEveryUsageIsCounted checks that every event with the usage of a model call adds to the usage of the user. Events
// that sum up other usages do not.
func TestEveryUsageIsCounted(t *testing.T) {
	n := 0
	for name, kind := range bodyTypes {
		body, err := kind.decode([]byte(`{"usage":{"input":1}}`))
		if err != nil {
			t.Fatal(name, err)
		}
		field := reflect.ValueOf(body).FieldByName("Usage")
		if !field.IsValid() || field.Type() != reflect.TypeFor[Usage]() {
			continue
		}
		switch body.(type) {
		case RunFinished, ChildReturned:
			continue
		}
		n++
		if row, ok := (Event{Body: body}).Row().(UsageAdded); !ok || row.Input != 1 || row.Calls != 1 {
			t.Errorf("%s: %+v", name, row)
		}
	}
	if n < 5 {
		t.Errorf("%d kinds of events say what a model used", n)
	}
}
