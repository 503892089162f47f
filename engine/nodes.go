package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley"
	"parley/port"
)

// Several nodes can share a store. One of them holds a session: the session's
// row names this node from the first append of its actor until the actor
// leaves. A command that comes to another node is passed on (forward.go). A node
// uses events of another node only after it has read them from the store.

// An awayError says that another node has to serve the session. Nothing was done.
type awayError struct {
	node    string        // the node that has the session
	why     string        // if node is empty: why this one cannot have it
	project string        // the project that a node needs; empty: that of the session
	wait    time.Duration // before this node looks again; zero: Config.Retry
}

func (e *awayError) Error() string { return "another node has to serve the session: " + e.node + e.why }

// others returns the other live nodes that are not draining.
func (e *Engine) others() (list []port.Node) {
	if e.Nodes == nil {
		return nil
	}
	for _, n := range e.Nodes.Others() {
		if !n.Draining {
			list = append(list, n)
		}
	}
	return list
}

// hasOtherNodes reports whether there are other nodes that may have the sessions which this node does not hold.
func (e *Engine) hasOtherNodes() bool { return e.Nodes != nil && len(e.Nodes.Others()) > 0 }

// mayLoad refuses to load a session that another node has, or whose project only other nodes have.
func (a *actor) mayLoad(st port.Stored) error {
	if st.Holder != "" {
		return &awayError{node: st.Holder}
	}
	return a.checkProjectServed(st.Summary.Project)
}

// checkProjectServed refuses a session of a project that other nodes have and this one does not.
func (a *actor) checkProjectServed(project string) error {
	e := a.engine
	if _, ok := e.projects.find(a.tenant, project); ok || len(e.nodesServing(project)) == 0 {
		return nil
	}
	return &awayError{why: "This node does not have the project " + project + ".", project: project}
}

// tooNew turns the error of a session that a later release has written into an awayError: a node of that release has to
// serve it.
func (e *Engine) tooNew(err error) error {
	if e.Nodes == nil || !errors.Is(err, parley.ErrNewer) {
		return err
	}
	return &awayError{wait: setAsideFor, why: "This session was written by a newer release of the server than this " +
		"node runs. Update the node, or use a node that is up to date."}
}

// noteTerm notes the lease term in which the session is loaded.
func (a *actor) noteTerm() error {
	if a.engine.Nodes == nil {
		return nil
	}
	term, err := a.engine.Nodes.Term(a.engine.ctx)
	a.term.Store(term)
	return err
}

// checkLease makes sure that no other node has taken the session. It reads the
// session's row only if this node's lease may have run out since the last
// check. Workers may call it, too.
func (a *actor) checkLease(ctx context.Context) error {
	e := a.engine
	if e.Nodes == nil {
		return nil
	}
	term, err := e.Nodes.Term(ctx)
	if err != nil {
		if len(e.Nodes.Others()) == 0 {
			return nil // no other node could have taken it
		}
		return err
	}
	if term == a.term.Load() {
		return nil
	}
	if err := a.checkOnlyWriter(ctx); err != nil {
		return err
	}
	a.term.Store(term)
	return nil
}

// checkOnlyWriter makes sure that there was no other writer since the session was
// loaded.
func (a *actor) checkOnlyWriter(ctx context.Context) error {
	st, err := a.engine.Store.Tenant(a.tenant).Session(ctx, a.session)
	switch {
	case err != nil && parley.CodeOf(err) == parley.CodeNotFound && a.s.epoch == 1:
		return nil // the session does not exist yet
	case err != nil:
		return err
	case st.Holder != "" || st.Epoch > a.s.epoch || st.Epoch == a.s.epoch && !a.s.wrote.Load():
		return &brokenError{errFenced}
	}
	return nil
}

// commandHere carries out a command if this node has the session. If the actor
// has not claimed its session, a refusal may rest on an old state. So
// commandHere then checks that no other node has written the session.
func (a *actor) commandHere(r *request) (receipt port.Receipt, err error) {
	defer func() { err = a.engine.cutOff(err) }()
	if err := a.checkLease(a.engine.ctx); err != nil {
		return port.Receipt{}, err
	}
	receipt, err = a.command(r)
	if err != nil && a.engine.Nodes != nil && !a.s.held && !isElsewhere(err) {
		if changed := a.checkOnlyWriter(a.engine.ctx); changed != nil {
			return port.Receipt{}, changed
		}
	}
	return receipt, err
}

// handOver hands the session over to another node in its current state. No worker of the session is alive here any
// more.
func (a *actor) handOver() {
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace/2)
	defer cancel()
	events, err := a.s.apply(ctx, entry{in: parley.Report{At: a.engine.Now(), Body: parley.HandOver{}}})
	if err == nil {
		a.engine.Feed.Publish(a.tenant, events)
		err = a.s.release(ctx, true)
	}
	if err != nil {
		a.log.Warn("a session was not handed over; another node takes it later", "error", err)
	}
	a.engine.tellNodes(dueTopic, nil)
}

// leave lets other nodes have a session that this stopping node has not loaded. Its row may still name this node: a
// node that was alone wrote nothing when it unloaded the session.
func (e *Engine) leave(ctx context.Context, k key) {
	if !e.hasOtherNodes() || e.hasLoaded(k) {
		return
	}
	st, err := e.Store.Tenant(k.tenant).Session(ctx, k.session)
	if err == nil && st.Holder == "" {
		_, err = e.Store.Append(ctx, port.Batch{Tenant: k.tenant, Session: k.session, Epoch: st.Epoch,
			After: st.Summary.Head, Summary: st.Summary, Leave: true})
	}
	if err != nil && parley.CodeOf(err) != parley.CodeNotFound {
		e.Log.Debug("a session was not left to other nodes", "session", k.session, "error", err)
	}
}

// isElsewhere reports whether an error only says that the session has another writer
// or its actor has left, and that nothing was done.
func isElsewhere(err error) bool {
	_, away := errors.AsType[*awayError](err)
	return away || errors.Is(err, errFenced) || errors.Is(err, errGone)
}

const (
	lookAtInbox    = 500 * time.Millisecond
	lookAtFacts    = time.Second
	lettersAtATime = 64
)

// lookAtDue is the longest wait of the scheduler while there are other nodes:
// they may release a session without a message.
const lookAtDue = time.Second

// dueTopic says that a session was left to other nodes, and factsTopic that facts of a tenant have changed.
const (
	dueTopic   = "c.due"
	factsTopic = "c.facts"
)

// watch handles letters for this node, and facts of tenants that other nodes
// have changed. It ends when the engine is closed.
func (e *Engine) watch() {
	letters, facts := time.NewTicker(lookAtInbox), time.NewTicker(lookAtFacts)
	defer letters.Stop()
	defer facts.Stop()
	known, who := int64(1), []string(nil)
	for {
		select {
		case <-letters.C:
			term, err := e.Nodes.Term(e.ctx)
			if err == nil && term != known || err != nil && e.hasOtherNodes() {
				known = max(known, term)
				e.nudgeAll() // each actor checks whether this node still has its session
			}
			var now []string
			for _, n := range e.others() {
				now = append(append(now, n.ID), n.Projects...)
			}
			if !slices.Equal(now, who) {
				who = now
				e.nudgeAll() // a node may have come with the project of a session that waits here
				e.poke()     // the scheduler looks more often while there are other nodes
			}
			if e.hasOtherNodes() {
				e.readLetters()
			}
		case <-e.letterCame:
			e.readLetters()
		case <-facts.C:
			if e.hasOtherNodes() {
				e.readFacts()
			}
		case <-e.factsChanged:
			e.readFacts()
		case <-e.ctx.Done():
			return
		}
	}
}

func (e *Engine) nudgeAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.actors {
		a.nudge()
	}
}

// readFacts drops the cached states of tenants whose facts have changed.
func (e *Engine) readFacts() {
	heads, err := e.Nodes.Facts(e.ctx, e.tenants.list())
	if err != nil && e.ctx.Err() == nil {
		e.Log.Warn("the changes of other nodes cannot be read", "error", err)
	}
	for id, head := range heads {
		e.tenants.dropOlder(id, head)
	}
}

// describeNode returns what other nodes are told of this one.
func (e *Engine) describeNode() port.Node {
	var n port.Node
	if e.Node != nil {
		n = e.Node()
	}
	n.ID, n.Sessions, n.Draining = e.Nodes.Node(), e.loaded(), e.draining.Load()
	for _, p := range e.projects.list {
		if p.Root != "" && !slices.Contains(n.Projects, p.Root) {
			n.Projects = append(n.Projects, p.Root)
		}
	}
	return n
}

// nodesServing lists the other nodes that can have a session of a project, those with the fewest sessions first.
func (e *Engine) nodesServing(project string) (nodes []string) {
	list := e.others()
	slices.SortStableFunc(list, func(a, b port.Node) int { return a.Sessions - b.Sessions })
	for _, n := range list {
		if project == "" || slices.ContainsFunc(n.Projects, func(root string) bool {
			return port.NewProject(root, "").Is(project)
		}) {
			nodes = append(nodes, n.ID)
		}
	}
	return nodes
}

// projectsDiffer reports whether another node has a project that this one does not. In that case every new session
// records its project, even if this node has only one.
func (e *Engine) projectsDiffer() bool {
	if e.Nodes == nil {
		return false
	}
	var mine []string
	for _, p := range e.projects.list {
		mine = append(mine, p.Root)
	}
	for _, n := range e.Nodes.Others() {
		for _, root := range n.Projects {
			if !slices.Contains(mine, root) {
				return true
			}
		}
	}
	return false
}

// joinNodes describes this node to the others, and starts listening to them.
func (e *Engine) joinNodes() {
	e.Nodes.Describe(e.describeNode)
	e.wg.Go(e.watch)
	if e.Bus == nil {
		return
	}
	stops := []func(){
		e.Bus.Listen(dueTopic, func([]byte) { e.poke() }),
		e.Bus.Listen(factsTopic, func([]byte) {
			select {
			case e.factsChanged <- struct{}{}:
			default: // a signal is pending
			}
		}),
		e.Bus.Answer(e.Nodes.Node(), e.answerBusRequest),
		e.Bus.Listen(letterTopic+e.Nodes.Node(), func([]byte) { e.readLettersSoon() }),
	}
	e.wg.Go(func() {
		<-e.ctx.Done()
		for _, stop := range stops {
			stop()
		}
	})
}
