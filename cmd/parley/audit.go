package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/config"
	"parley/port"
	"parley/store/rules"
)

type auditCommand struct {
	Verify auditVerifyCommand `cmd:"" help:"Check that no row of the audit log was changed, moved or removed. Needs the key of the server."`
}

type auditVerifyCommand struct {
	config.Store
	Expect []string `placeholder:"TENANT:NO:HASH" help:"Row that an earlier audit verify printed. It must still be there; this finds a log whose end was cut off."`
}

// Run reads every chain from its beginning and prints the last row of each.
// Operators keep these rows elsewhere: a chain shows every change except a
// truncation at its end.
func (c *auditVerifyCommand) Run(p *program) (err error) {
	if err := c.Check(); err != nil {
		return err
	}
	key, err := findServerKey(&c.Store)
	if errors.Is(err, fs.ErrNotExist) {
		return &parley.Error{Code: parley.CodeNotFound, Err: err,
			Message: "The audit is chained under the server's key, and there is no key to verify it with.",
			Hint: "set PARLEY_SERVER_KEY to the key of the server, or name with --data its data folder, " +
				"which holds parley.key"}
	}
	if err != nil {
		return err
	}
	store, err := openReader(p.ctx, &c.Store)
	if err != nil {
		return err
	}
	defer store.Close()
	tenants, err := store.Tenants(p.ctx)
	if err != nil {
		return err
	}
	expected, err := c.expected()
	if err != nil {
		return err
	}
	bad := 0
	var all auditSum
	for _, tenant := range tenants {
		name := visible(string(tenant))
		if tenant == "" {
			name = "(server)"
		}
		check, wrong, err := verifyChain(p.ctx, store.Tenant(tenant), rules.AuditKeyOf(key), expected[tenant])
		switch {
		case err != nil:
			return err
		case wrong != "":
			bad++
			fmt.Fprintf(p.stdout, "%s: %s\n", name, wrong)
		case check.No > 0:
			fmt.Fprintf(p.stdout, "%s: %d rows are as they were written; the last is %s:%d:%s\n",
				name, check.Rows, visible(string(tenant)), check.No, visible(check.Hash))
		}
		if wrong == "" && check.Cut.No > 0 {
			fmt.Fprintf(p.stdout, "%s: rows 1 to %d, up to %s, were deleted by retention\n",
				name, check.Cut.No, check.Cut.To.Format(time.RFC3339))
		}
		if !check.Sealed.IsZero() {
			fmt.Fprintf(p.stdout, "%s: rows %d to %d were written without a key, before an upgrade; "+
				"they are as they were when the server sealed them, at %s\n",
				name, check.Cut.No+1, check.Cut.No+check.Unkeyed, check.Sealed.Format(time.RFC3339))
		}
		all.add(check)
		delete(expected, tenant)
	}
	for tenant := range expected {
		bad++
		fmt.Fprintf(p.stdout, "%s: the audit log has no rows\n", tenant)
	}
	if bad > 0 {
		return &parley.Error{Code: parley.CodeCorrupt, Message: fmt.Sprintf("%d records were tampered with.", bad),
			Hint: "compare with a backup"}
	}
	_, err = fmt.Fprintln(p.stdout, all)
	return err
}

// An auditSum adds up the numbers of intact chains.
type auditSum struct {
	rows, unkeyed int64
	since         time.Time // time of the oldest row under the key
}

func (a *auditSum) add(c *rules.ChainCheck) {
	a.rows += c.Rows
	a.unkeyed += c.Unkeyed
	if !c.Since.IsZero() && (a.since.IsZero() || c.Since.Before(a.since)) {
		a.since = c.Since
	}
}

func (a auditSum) String() string {
	if a.rows == 0 {
		return "All is well: the audit log has no rows yet."
	}
	older := ""
	if a.unkeyed > 0 {
		older = fmt.Sprintf(", %d of them older and without the key", a.unkeyed)
	}
	return fmt.Sprintf("All is well: %d rows, under the server's key since %s%s.",
		a.rows, a.since.Format(time.RFC3339), older)
}

// expected parses --expect: the hash that a row must have, by tenant and row number.
func (c *auditVerifyCommand) expected() (map[parley.TenantID]map[int64]string, error) {
	all := map[parley.TenantID]map[int64]string{}
	for _, e := range c.Expect {
		parts := strings.Split(e, ":")
		if len(parts) != 3 || len(parts[2]) != 64 {
			return nil, fmt.Errorf("--expect %s is not TENANT:NO:HASH, as parley audit verify prints it", e)
		}
		no, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("--expect %s: %s is not the number of a row", e, parts[1])
		}
		tenant := parley.TenantID(parts[0])
		if all[tenant] == nil {
			all[tenant] = map[int64]string{}
		}
		all[tenant][no] = parts[2]
	}
	return all, nil
}

// verifyChain describes what is wrong with a chain. The text is empty if the chain is intact.
func verifyChain(ctx context.Context, logs port.TenantStore, key rules.AuditKey, expected map[int64]string) (
	*rules.ChainCheck, string, error) {
	for {
		cut, err := lastCut(ctx, logs)
		if err != nil {
			return nil, "", err
		}
		check := rules.NewChainCheck(key, cut)
		wrong, err := readChain(ctx, logs, check, expected)
		if err != nil || wrong == "" {
			return check, wrong, err
		}
		// A server may have cut the chain during the read.
		if now, err := lastCut(ctx, logs); err != nil || now == cut {
			return check, wrong, err
		}
	}
}

// lastCut returns where the chain was cut, according to its latest record of a cut. readChain verifies that record.
func lastCut(ctx context.Context, logs port.TenantStore) (port.AuditCut, error) {
	rows, err := logs.Audited(ctx, port.AuditQuery{Action: port.AuditTrimmed, Limit: 1})
	return rules.LastCut(rows), err
}

func readChain(ctx context.Context, logs port.TenantStore, check *rules.ChainCheck, expected map[int64]string) (
	wrong string, err error) {
	expected = maps.Clone(expected)
	seen := func(no int64, hash string) string {
		if want := expected[no]; want != "" && want != hash {
			return fmt.Sprintf("row %d is not the row that --expect names", no)
		}
		delete(expected, no)
		return ""
	}
	if wrong := seen(check.No, check.Hash); wrong != "" {
		return wrong, nil
	}
	for after := int64(0); ; after = check.No {
		page, err := logs.AuditChain(ctx, after, 1000)
		if err != nil {
			return "", err
		}
		if bad, why := check.Add(page); bad != nil {
			return fmt.Sprintf("row %d is not as it was written: it %s (%s at %s)",
				bad.No, why, visible(bad.Action), bad.At.Format(time.RFC3339)), nil
		}
		for _, r := range page {
			if wrong := seen(r.No, r.Hash); wrong != "" {
				return wrong, nil
			}
		}
		if len(page) == 0 {
			break
		}
	}
	if !check.CutProved() {
		return fmt.Sprintf("rows 1 to %d are gone, and no row under the server's key says that retention deleted them",
			check.Cut.No), nil
	}
	maps.DeleteFunc(expected, func(no int64, _ string) bool { return no < check.Cut.No })
	for missing := range expected {
		return fmt.Sprintf("row %d is gone: the audit log ends at row %d", missing, check.No), nil
	}
	if check.Rows > 0 && check.Unkeyed == check.Rows {
		return fmt.Sprintf("no row is under the server's key; all %d may be forged. "+
			"If they are of an earlier release, start the server once", check.Rows), nil
	}
	return "", nil
}

// sealAudit seals every chain that ends with a row without the key, as earlier
// releases wrote them: it appends a row under the key. Later additions or changes
// of rows without a key are then detected.
func sealAudit(ctx context.Context, store store, key rules.AuditKey, log *slog.Logger) error {
	tenants, err := store.Tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		rows, err := store.Tenant(tenant).Audited(ctx, port.AuditQuery{Limit: 2}) // newest first
		if err != nil {
			return err
		}
		before := ""
		if len(rows) == 2 {
			before = rows[1].Hash
		} else if len(rows) == 1 {
			before = rows[0].Cut().Hash // retention has deleted all earlier rows
		}
		switch {
		case len(rows) == 0 || rules.Sum(key, rows[0], before) == rows[0].Hash:
		case rules.Sum(nil, rows[0], before) == rows[0].Hash:
			log.Warn("the audit has no key yet and is sealed; this is expected once, after an upgrade",
				"tenant", tenant, "rows", rows[0].No)
			record := parley.Audit{At: time.Now(), Action: port.AuditSealed, Resource: "audit", Source: "system",
				Metadata: parley.Metadata(map[string]any{"rows": rows[0].No})}
			if _, err := store.Append(ctx, port.Batch{Tenant: tenant, Audit: []parley.Audit{record}}); err != nil {
				return err
			}
		default:
			log.Warn("the audit was changed, or written under another server key; parley audit verify says where",
				"tenant", tenant)
		}
	}
	return nil
}
