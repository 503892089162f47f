package parley

// UsageAdded adds to the usage of the session's owner on the day of the event.
type UsageAdded struct {
	Sessions, Calls int64
	Usage
}

func (UsageAdded) row() {}

func (b SessionOpened) rowOf(e Event) rowChange {
	if b.Parent != nil || e.Session == TenantSession {
		return nil
	}
	return UsageAdded{Sessions: 1}
}

func (b TurnFinished) rowOf(Event) rowChange      { return called(b.Usage) }
func (b ApprovalExplained) rowOf(Event) rowChange { return called(b.Usage) }
func (b FollowUpEvaluated) rowOf(Event) rowChange { return called(b.Usage) }
func (b ContextCompacted) rowOf(Event) rowChange  { return called(b.Usage) }
func (b SessionRenamed) rowOf(Event) rowChange    { return called(b.Usage) }
func (b LateResultNoted) rowOf(Event) rowChange   { return called(b.Usage) }

// called returns the row of a model call; nil: no usage was reported.
func called(u Usage) rowChange {
	if u == (Usage{}) {
		return nil
	}
	return UsageAdded{Calls: 1, Usage: u}
}
