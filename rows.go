package parley

// Runs, open cards, timers and effects have rows beside the log, so that they can
// be found without reading a log. A row locates its subject in the log and says
// how it ended. Only the log contains the texts.

// A rowChange is the change of one event to the rows of its session. Stores apply it in
// the transaction that appends the event.
type rowChange interface{ row() }

// RowsGone removes all rows of the session's runs, cards and timers.
type RowsGone struct{}

func (RowsGone) row() {}

// Row returns nil for most events. Events that change rows have a method rowOf
// beside their type.
func (e Event) Row() rowChange {
	if b, ok := e.Body.(interface{ rowOf(Event) rowChange }); ok {
		return b.rowOf(e)
	}
	return nil
}
