package parley_test

import (
	"strings"
	"testing"

	"parley"
)

// TestRenamesAreOnRecord, without the title itself.
func TestRenamesAreOnRecord(t *testing.T) {
	records := parley.AuditOf(parley.Command{Via: parley.ViaHTTP},
		[]parley.Event{{Session: "s", Seq: 3, At: start, By: "ann", Body: parley.SessionRenamed{Title: "a secret"}}})
	if len(records) != 1 || records[0].Action != "session.renamed" || records[0].By != "ann" ||
		strings.Contains(string(records[0].Metadata), "secret") {
		t.Errorf("%+v", records)
	}
}
