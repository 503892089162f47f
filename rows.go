package parley

// Runs, open cards, timers and effects have rows beside the log, so that they are
// found without reading one. A row says where something is and how it ended. The
// texts are in the log alone.

// A Row is what one event does to the rows of its session. Stores carry it out in
// the transaction that appends the event.
type Row interface{ row() }

// RowsGone removes all rows of the session's runs, cards and timers.
type RowsGone struct{}

func (RowsGone) row() {}

// Row is nil for most events. Those that change rows say which by a method
// beside their type.
func (e Event) Row() Row {
	if b, ok := e.Body.(interface{ rowOf(Event) Row }); ok {
		return b.rowOf(e)
	}
	return nil
}
