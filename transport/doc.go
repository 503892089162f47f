// Package transport carries messages over WebSocket and server-sent events. It
// handles framing, limits of size and time, and the end of a connection; the
// dialects define the messages.
//
// No goroutine that it starts outlives the call that started it, except while a
// ping is being written. An idle connection costs a timer and no buffer. A
// Socket outlives the handler that accepted it. A Stream does not: it is the
// handler's response.
package transport
