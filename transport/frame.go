package transport

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The opcodes of frames, and the bit that marks the last frame of a message.
const (
	opContinue = 0x0
	opText     = 0x1
	opBinary   = 0x2
	opClose    = 0x8
	opPing     = 0x9
	opPong     = 0xA

	final   = 0x80
	control = 0x8 // the bit that all control frames have
)

const (
	maxHeader  = 14  // bytes of the longest header of a client's frame
	maxControl = 125 // maximum payload of a control frame in bytes
)

// frameHeader is the header of a frame.
type frameHeader struct {
	op     byte
	final  bool
	length int64
	mask   [4]byte
}

// headerLength returns the length of a client's header in bytes, given its
// second byte.
func headerLength(second byte) int {
	switch second & 0x7f {
	case 126:
		return 8
	case 127:
		return maxHeader
	}
	return 6
}

// parseHeader parses the header of a client's frame. If the frame violates the
// protocol, the header still says where the frame ends.
func parseHeader(b []byte) (h frameHeader, err error) {
	h.op, h.final = b[0]&0x0f, b[0]&final != 0
	masked := b[1]&0x80 != 0
	rest := b[2:]
	switch h.length = int64(b[1] & 0x7f); h.length {
	case 126:
		h.length, rest = int64(binary.BigEndian.Uint16(rest)), rest[2:]
	case 127:
		h.length, rest = int64(binary.BigEndian.Uint64(rest)), rest[8:]
	}
	if h.length < 0 {
		h.length = math.MaxInt64
		return h, fmt.Errorf("a frame has a negative payload length")
	}
	copy(h.mask[:], rest)
	switch {
	case b[0]&0x70 != 0:
		err = fmt.Errorf("a frame has rsv bits set: %#x", b[0])
	case !masked:
		err = fmt.Errorf("unmasked frame from a client")
	case h.op > opBinary && h.op < opClose || h.op > opPong:
		err = fmt.Errorf("a frame has the unknown opcode %d", h.op)
	case h.op&control != 0 && h.length > maxControl:
		err = fmt.Errorf("a control frame has a payload of %d bytes", h.length)
	case h.op&control != 0 && !h.final:
		err = fmt.Errorf("a control frame is fragmented")
	}
	return h, err
}

// appendHeader appends the header of a server's frame. Servers do not fragment
// messages or mask frames.
func appendHeader(b []byte, op byte, length int) []byte {
	b = append(b, final|op)
	switch {
	case length < 126:
		return append(b, byte(length))
	case length <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 126), uint16(length))
	}
	return binary.BigEndian.AppendUint64(append(b, 127), uint64(length))
}

// unmask removes the mask from the part of a payload that begins at offset at.
func unmask(b []byte, mask [4]byte, at int64) {
	if mask == [4]byte{} {
		return
	}
	var turned [8]byte
	for i := range turned {
		turned[i] = mask[(at+int64(i))%4]
	}
	word := binary.LittleEndian.Uint64(turned[:])
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^word)
	}
	for i := range b {
		b[i] ^= turned[i]
	}
}

// closePayload returns the payload of a close frame.
func closePayload(c *Closed) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(c.Code)), c.Reason...)
}

// parseClose parses the payload of the peer's close frame.
func parseClose(b []byte) (*Closed, error) {
	if len(b) == 0 {
		return &Closed{Code: NoCode}, nil
	}
	if len(b) == 1 {
		return nil, fmt.Errorf("a close frame has half a code")
	}
	code := Code(binary.BigEndian.Uint16(b))
	if code < 1000 || code > 1014 && code < 3000 || code > 4999 || code == 1004 || code == NoCode || code == Lost {
		return nil, fmt.Errorf("a close frame has the code %d", code)
	}
	return &Closed{Code: code, Reason: fit(string(b[2:]))}, nil
}
