package dialect

import (
	"context"
	"slices"

	"parley"
	"parley/port"
)

// ReadLog reads the events of a session from seq first to seq last. The log must have an event with seq last or higher,
// or ReadLog waits for one.
func ReadLog(ctx context.Context, door port.Door, who port.Principal, id parley.SessionID, first, last parley.Seq,
	each func(parley.Event)) error {
	if first > last {
		return nil
	}
	f, err := door.Follow(ctx, who, port.Scope{Session: id}, port.Cursor{After: int64(first) - 1})
	if err != nil {
		return err
	}
	defer f.Close()
	return ReadUntil(ctx, f, func(i *port.Item) bool {
		if i.Seq <= last {
			each(i.Event)
		}
		return i.Seq >= last
	})
}

// ReadUntil calls last for every item of a follower, until last returns true. It waits for new events.
func ReadUntil(ctx context.Context, f port.Follower, last func(*port.Item) bool) error {
	for {
		items, err := f.Next(ctx)
		if err != nil || slices.ContainsFunc(items, last) {
			return err
		}
	}
}
