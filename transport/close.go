package transport

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Code says how a WebSocket ended and thereby what the client should do. The
// server sends the ones named here; dialects may add their own from 4000 on.
type Code int

const (
	// Normal: what the connection was for is done. Do not come back.
	Normal Code = 1000
	// GoingAway: the server stops, or lost patience with a silent peer. Come
	// back and resume.
	GoingAway Code = 1001
	// ProtocolError: the client's frames are not WebSocket. Do not come back.
	ProtocolError Code = 1002
	// Unsupported: a binary message. Do not send it again.
	Unsupported Code = 1003
	// InvalidText: a message that is not UTF-8. Do not send it again.
	InvalidText Code = 1007
	// Policy: not permitted. Do not come back with the same credentials.
	Policy Code = 1008
	// TooBig: a message over the limit, which the reason names. Come back, but
	// do not send it again.
	TooBig Code = 1009
	// Internal: a fault of the server. Come back, with growing patience.
	Internal Code = 1011
	// TryLater: the server has too much to do or the client fell too far
	// behind. Come back after a while, and resume.
	TryLater Code = 1013

	// Lost stands for an end without goodbye, and is never on the wire.
	Lost Code = 1006
	// NoCode stands for a goodbye that gives no code, and is never on the wire.
	NoCode Code = 1005
)

// Closed is how every error of a Socket says why it ended. Local: this side
// ended it, and unless Code is Lost the peer was told Code and Reason.
type Closed struct {
	Code   Code
	Reason string
	Local  bool
}

func (c *Closed) Error() string {
	by := "the peer"
	if c.Local {
		by = "us"
	}
	return fmt.Sprintf("websocket closed by %s: %d %s", by, c.Code, c.Reason)
}

// local is an end of our making.
func local(code Code, format string, args ...any) *Closed {
	return &Closed{Code: code, Reason: fit(fmt.Sprintf(format, args...)), Local: true}
}

// A control frame has room for 125 bytes, of which the code takes two.
const maxReason = 123

// fit makes a reason that may be sent: UTF-8, cut between runes.
func fit(reason string) string {
	reason = strings.ToValidUTF8(reason, "\uFFFD")
	if len(reason) <= maxReason {
		return reason
	}
	n := maxReason
	for !utf8.RuneStart(reason[n]) {
		n--
	}
	return reason[:n]
}
