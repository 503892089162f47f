// Package trace exports runs as OpenTelemetry traces, by the semantic conventions
// for generative AI.
//
// The log of a session already says what happened and when. So nothing is
// recorded while a run works: when a run has ended, its spans are computed from
// its log and sent. A crash loses nothing of a run that another process
// continues, and a collector that is down costs a list of the runs it has not
// got yet. See docs/adr/0089-traces-come-from-the-log.md.
//
// One trace is one run of a session that people talk to, with the runs of its
// sub-agents:
//
//	invoke_agent coder                a run
//	├── turn
//	│   ├── chat claude-sonnet-4-5    the model call of the turn
//	│   ├── approval shell            a person was waited for
//	│   └── execute_tool shell        one attempt at a tool call
//	└── turn
//	    ├── chat claude-sonnet-4-5
//	    └── execute_tool delegate
//	        └── invoke_agent explorer the run of a sub-agent
//
// Ids follow from the names of things in the log. So every node, and every
// process after a restart, gives a span the same id.
package trace

import (
	"crypto/sha256"
	"fmt"

	"parley"
)

// A place is where the spans of a run belong.
type place struct {
	epoch   string // of the store: a history that was restored from a backup has other traces
	tenant  parley.TenantID
	session parley.SessionID
	run     parley.RunID

	trace  []byte // 16 bytes
	parent []byte // the span above the run, 8 bytes; nil: none
}

// atTop is the place of a run that no other run has delegated.
func atTop(epoch string, tenant parley.TenantID, session parley.SessionID, run parley.RunID) place {
	p := place{epoch: epoch, tenant: tenant, session: session, run: run}
	p.trace = p.hash("trace", parley.Seq(run))[:16]
	return p
}

// below is the place of a run of the session that a call of this run has spawned.
func (p place) below(call parley.CallID, child parley.SessionID, run parley.RunID) place {
	parent := p.span("call", parley.Seq(call))
	p.session, p.run, p.parent = child, run, parent
	return p
}

// span is the id of the span of something in the session of the place, which the
// seq of an event names.
func (p place) span(kind string, seq parley.Seq) []byte { return p.hash(kind, seq)[:8] }

func (p place) hash(kind string, seq parley.Seq) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "parley %s\x00%s\x00%s\x00%s\x00%d", kind, p.epoch, p.tenant, p.session, seq))
	return sum[:]
}
