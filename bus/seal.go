package bus

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"sync"
)

const (
	macBytes = 16
	overhead = macBytes + len(nodeID{}) + 1 // of a sealed message
)

// A sealer proves that messages come from a node that has the server's key. It
// covers the topic, so that a message cannot be moved to another. A message that
// is sent again verifies: a bus may repeat messages, and receivers allow for it.
type sealer struct{ hashes *sync.Pool }

func newSealer(key []byte) sealer {
	derive := hmac.New(sha256.New, key)
	derive.Write([]byte("parley bus 1"))
	own := derive.Sum(nil)
	return sealer{&sync.Pool{New: func() any { return hmac.New(sha256.New, own) }}}
}

// sum appends the keyed hash of the rest of a message.
func (s sealer) sum(to []byte, topic string, rest []byte) []byte {
	h := s.hashes.Get().(hash.Hash)
	defer s.hashes.Put(h)
	h.Reset()
	h.Write([]byte(topic))
	h.Write([]byte{0}) // no topic contains it
	h.Write(rest)
	var full [sha256.Size]byte
	return append(to, h.Sum(full[:0])[:macBytes]...)
}

// seal makes a message: hash, sender, kind, body.
func (s sealer) seal(topic string, from nodeID, kind byte, body []byte) []byte {
	m := make([]byte, macBytes, overhead+len(body))
	m = append(m, from[:]...)
	m = append(m, kind)
	m = append(m, body...)
	s.sum(m[:0], topic, m[macBytes:])
	return m
}

// open verifies a message and takes it apart. ok is false if its sender does
// not have this key.
func (s sealer) open(topic string, m []byte) (from nodeID, kind byte, body []byte, ok bool) {
	if len(m) < overhead {
		return from, 0, nil, false
	}
	var sum [macBytes]byte
	if !hmac.Equal(s.sum(sum[:0], topic, m[macBytes:]), m[:macBytes]) {
		return from, 0, nil, false
	}
	copy(from[:], m[macBytes:])
	return from, m[overhead-1], m[overhead:], true
}
