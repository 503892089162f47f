package port

import "context"

// A Bus carries messages between nodes. It may lose, repeat, delay and reorder
// all of them: it only makes things quick, and what is true is in the store.
type Bus interface {
	// Publish sends a message to every other node that listens to a topic. It
	// neither waits nor fails. The bus keeps the message: it must not change.
	Publish(topic string, message []byte)
	// Listen has hear called for each message of a topic until stop, one at a
	// time. A nil message means that messages of the topic may be missing here: the
	// bus was cut off, or could not carry one. hear must not wait for anything, and
	// may be called once more while stop returns.
	Listen(topic string, hear func(message []byte)) (stop func())
	// Ask sends a message to one other node and returns its answer.
	// CodeUnavailable: none came before ctx ended, nobody answers for that node, or
	// the bus cannot carry the message or the answer.
	Ask(ctx context.Context, node string, message []byte) ([]byte, error)
	// Answer answers what other nodes ask this one, each on a goroutine of its own,
	// until stop, which waits for them. ctx ends when the asking node stops waiting.
	Answer(node string, answer func(ctx context.Context, message []byte) []byte) (stop func())
}
