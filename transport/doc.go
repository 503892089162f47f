// Package transport carries messages over WebSocket and server-sent events. It
// knows how they are framed, how large and how late they may be, and how a
// connection ends; what they say is up to the dialects.
//
// It starts no goroutine that outlives the call it was started in, except while
// a ping is being written; an idle connection costs a timer, and no buffer.
// Nothing it hands out depends on the handler that asked for it still running,
// save for a Stream, which is that handler's response.
package transport
