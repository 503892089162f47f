package engine

import (
	"context"
	"time"
	"unicode/utf8"

	"parley"
	"parley/pacing"
	"parley/port"
)

// Search implements port.Door.
func (e *Engine) Search(ctx context.Context, who port.Principal, q port.SearchQuery) (port.Found, error) {
	if err := e.mayList(ctx, who, "", &q.Owner, &q.Limit); err != nil {
		return port.Found{}, err
	}
	switch {
	case parley.IsBlank(q.Text):
		return port.Found{}, parley.Errorf(parley.CodeEmpty, "There is nothing to search for: q has no words.")
	case len(q.Text) > parley.MaxSearch:
		return port.Found{}, parley.Errorf(parley.CodeTooLarge, "A search has at most %d bytes, and this one has %d.",
			parley.MaxSearch, len(q.Text))
	case !utf8.ValidString(q.Text):
		return port.Found{}, parley.Errorf(parley.CodeInvalid, "A search is text in UTF-8.")
	}
	found, err := e.Store.Tenant(who.Tenant).Search(ctx, q)
	if err != nil {
		return port.Found{}, err
	}
	return found, e.auditSearch(ctx, who, found.Passages)
}

// auditSearch records in the audit which sessions of other users a search has shown something of.
func (e *Engine) auditSearch(ctx context.Context, who port.Principal, shown []port.Passage) error {
	var records []parley.Audit
	noted := map[parley.SessionID]bool{}
	for _, p := range shown {
		if p.Owner == who.ID || noted[p.Session] {
			continue
		}
		noted[p.Session] = true
		records = append(records, parley.Audit{At: e.Now(), By: who.ID, Action: port.AuditSessionRead,
			Resource: "session", ID: string(p.Session), Source: parley.ViaHTTP,
			Metadata: parley.Metadata(map[string]any{"owner": p.Owner, "search": true})})
	}
	if len(records) == 0 {
		return nil
	}
	_, err := e.Store.Append(ctx, port.Batch{Tenant: who.Tenant, Audit: records})
	return err
}

// indexEarlier makes the store index what an earlier release has appended. It ends when that is done, or the engine is
// closed.
func (e *Engine) indexEarlier() {
	total := 0
	for {
		n, more, err := e.Store.IndexEarlier(e.ctx)
		if total == 0 && n > 0 {
			e.Log.Info("earlier conversations are being indexed for search")
		}
		total += n
		wait := trimPause
		switch {
		case e.ctx.Err() != nil:
			return
		case err != nil:
			e.Log.Error("earlier conversations could not be indexed for search; trying again", "error", err)
			wait = indexRetry
		case !more:
			if total > 0 {
				e.Log.Info("earlier conversations are indexed for search", "messages", total)
			}
			return
		}
		if !pacing.Sleep(e.ctx, wait) {
			return
		}
	}
}

// indexRetry is the pause after the store failed to index.
const indexRetry = 30 * time.Second
