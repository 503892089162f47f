package rules

import (
	"parley"
	"parley/port"
)

// A Body is the body of an event as a store keeps it.
type Body struct {
	Type    string
	Version int
	JSON    []byte
}

// EncodeBodies returns the bodies of events, and their size in bytes.
func EncodeBodies(events []parley.Event) (list []Body, size int, err error) {
	list = make([]Body, len(events))
	for i, e := range events {
		b := &list[i]
		if b.Type, b.Version, b.JSON, err = parley.EncodeBody(e.Body); err != nil {
			return nil, 0, err
		}
		size += len(b.JSON)
	}
	return list, size, nil
}

// Decode returns the body of the event.
func (b Body) Decode() (parley.EventBody, error) { return parley.DecodeBody(b.Type, b.Version, b.JSON) }

// ReadCard fills in a card from the event that opened it and the event of its call. It returns false if one of them
// cannot be decoded: the card cannot be answered then.
func ReadCard(c *port.CardInfo, card, call Body) bool {
	opened, err := card.Decode()
	if err != nil {
		return false
	}
	asked, err := call.Decode()
	if err != nil {
		return false
	}
	c.Read(opened, asked)
	return true
}
