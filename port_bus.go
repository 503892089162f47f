package parley

import "context"

// A Bus carries messages between nodes. It may lose, repeat, delay and reorder
// all of them: it only makes things quick, and what is true is in the store.
type Bus interface {
	// Publish sends a message to every node that listens to a topic. It neither
	// waits nor fails.
	Publish(topic string, message []byte)
	// Listen has hear called for each message of a topic until stop, one at a
	// time. hear must not wait for anything.
	Listen(topic string, hear func(message []byte)) (stop func())
	// Ask sends a message to one node and returns its answer. CodeUnavailable:
	// none came before ctx ended, or nobody answers for that node.
	Ask(ctx context.Context, node string, message []byte) ([]byte, error)
	// Answer answers what other nodes ask this one, each on a goroutine of its own,
	// until stop, which waits for them.
	Answer(node string, answer func(ctx context.Context, message []byte) []byte) (stop func())
}
