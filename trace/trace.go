// Package trace exports runs as OpenTelemetry traces, by the semantic conventions
// for generative AI.
//
// The log of a session already contains what happened and when. So nothing is
// recorded during a run: when a run has ended, its spans are computed from its
// log and sent. If another process continues a run after a crash, no span is
// lost. If a collector is down, the only cost is a list of the runs that it has
// not received. See docs/adr/0089-traces-come-from-the-log.md.
//
// A trace is one run of a session that people talk to, with the runs of its
// sub-agents:
//
//	invoke_agent coder                a run
//	├── turn
//	│   ├── chat claude-sonnet-4-5    the model call of the turn
//	│   ├── approval shell            the wait for a person
//	│   └── execute_tool shell        one attempt at a tool call
//	└── turn
//	    ├── chat claude-sonnet-4-5
//	    └── execute_tool delegate
//	        └── invoke_agent explorer the run of a sub-agent
//
// Ids are derived from ids in the log. So every node, and every process after a
// restart, computes the same id for a span.
package trace

import (
	"crypto/sha256"
	"fmt"

	"parley"
)

// A place is the position of a run's spans in a trace.
type place struct {
	epoch   string // epoch of the store: a restored history has other traces
	tenant  parley.TenantID
	session parley.SessionID
	run     parley.RunID

	trace  []byte // 16 bytes
	parent []byte // id of the span above the run, 8 bytes; nil: none
}

// atTop returns the place of a run without a parent run.
func atTop(epoch string, tenant parley.TenantID, session parley.SessionID, run parley.RunID) place {
	p := place{epoch: epoch, tenant: tenant, session: session, run: run}
	p.trace = p.hash("trace", parley.Seq(run))[:16]
	return p
}

// below returns the place of a run in a child session, which a call of this run has
// spawned.
func (p place) below(call parley.CallID, child parley.SessionID, run parley.RunID) place {
	parent := p.span("call", parley.Seq(call))
	p.session, p.run, p.parent = child, run, parent
	return p
}

// span returns the span id for the event with this seq, in the session of the
// place.
func (p place) span(kind string, seq parley.Seq) []byte { return p.hash(kind, seq)[:8] }

func (p place) hash(kind string, seq parley.Seq) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "parley %s\x00%s\x00%s\x00%s\x00%d", kind, p.epoch, p.tenant, p.session, seq))
	return sum[:]
}
