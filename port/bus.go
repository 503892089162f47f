package port

import "context"

// A Bus carries messages between nodes. It may lose, repeat, delay and reorder
// messages. It only speeds things up: the truth is in the store.
type Bus interface {
	// Publish sends a message to every other node that listens to a topic. It
	// neither waits nor fails. The bus keeps the message, so the caller must
	// not modify it.
	Publish(topic string, message []byte)
	// Listen calls hear for each message of a topic until stop, one at a time. A
	// nil message means that messages of the topic may be missing here: the bus was
	// disconnected, or could not carry one. hear must not block, and may be called
	// once more while stop returns.
	Listen(topic string, hear func(message []byte)) (stop func())
	// Ask sends a message to one other node and returns its answer. It returns
	// CodeUnavailable in three cases: no answer came before ctx ended, no node
	// answers to that name, or the bus cannot carry the message or the answer.
	Ask(ctx context.Context, node string, message []byte) ([]byte, error)
	// Answer answers the questions of other nodes to this one, each on a goroutine
	// of its own, until stop, which waits for these goroutines. ctx ends when the
	// asking node stops waiting.
	Answer(node string, answer func(ctx context.Context, message []byte) []byte) (stop func())
}
