package transport

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Code says why a WebSocket was closed, and so what the client should do. The
// server sends the codes named here; dialects may add their own from 4000 on.
type Code int

const (
	// Normal: the purpose of the connection is fulfilled. Do not reconnect.
	Normal Code = 1000
	// GoingAway: the server stops, or the peer did not answer a ping in time.
	// Reconnect and resume.
	GoingAway Code = 1001
	// ProtocolError: the client's frames are not WebSocket. Do not reconnect.
	ProtocolError Code = 1002
	// Unsupported: the client sent a binary message. Do not send it again.
	Unsupported Code = 1003
	// InvalidText: the client sent a message that is not UTF-8. Do not send it
	// again.
	InvalidText Code = 1007
	// Policy: not permitted. Do not reconnect with the same credentials.
	Policy Code = 1008
	// TooBig: a message was over the limit, which the reason names. Reconnect,
	// but do not send it again.
	TooBig Code = 1009
	// Internal: a fault of the server. Reconnect with a growing delay.
	Internal Code = 1011
	// TryLater: the server is overloaded, or the client fell too far behind.
	// Reconnect after a while, and resume.
	TryLater Code = 1013

	// Lost means that the connection ended without a close frame. It is never
	// on the wire.
	Lost Code = 1006
	// NoCode means that the close frame had no code. It is never on the wire.
	NoCode Code = 1005
)

// Closed is the error of every method of a closed Socket. Local means that this
// side closed it; unless Code is Lost, the peer was sent Code and Reason.
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

// local returns the cause of a close by this side.
func local(code Code, format string, args ...any) *Closed {
	return &Closed{Code: code, Reason: fit(fmt.Sprintf(format, args...)), Local: true}
}

// A control frame has room for 125 bytes, of which the code takes two.
const maxReason = 123

// fit returns a reason that fits into a close frame: valid UTF-8, cut between
// runes.
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
