package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/config"
	"parley/store/rules"
)

type auditCommand struct {
	Verify auditVerifyCommand `cmd:"" help:"Check that no row of the audit log was changed, moved or removed. Needs the key of the server."`
}

type auditVerifyCommand struct {
	config.Store
	Expect []string `placeholder:"TENANT:NO:HASH" help:"Row that an earlier audit verify printed. It must still be there; this finds a log whose end was cut off."`
}

// Run reads every chain from its beginning. It prints the last row of each, to be
// kept elsewhere: a chain shows every change but the cutting off of its end.
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
		name := string(tenant)
		if tenant == "" {
			name = "(server)"
		}
		check := &rules.ChainCheck{Key: rules.AuditKeyOf(key)}
		wrong, err := verifyChain(p.ctx, store.Tenant(tenant), check, expected[tenant])
		switch {
		case err != nil:
			return err
		case wrong != "":
			bad++
			fmt.Fprintf(p.stdout, "%s: %s\n", name, wrong)
		case check.No > 0:
			fmt.Fprintf(p.stdout, "%s: %d rows are as they were written; the last is %s:%d:%s\n",
				name, check.No, tenant, check.No, check.Hash)
		}
		if !check.Sealed.IsZero() {
			fmt.Fprintf(p.stdout, "%s: rows 1 to %d were written without a key, before an upgrade; "+
				"they are as they were when the server sealed them, at %s\n",
				name, check.Unkeyed, check.Sealed.Format(time.RFC3339))
		}
		all.add(check)
		delete(expected, tenant)
	}
	for tenant := range expected {
		bad++
		fmt.Fprintf(p.stdout, "%s: nothing is on record\n", tenant)
	}
	if bad > 0 {
		return &parley.Error{Code: parley.CodeCorrupt, Message: fmt.Sprintf("%d records were tampered with.", bad),
			Hint: "compare with a backup"}
	}
	_, err = fmt.Fprintln(p.stdout, all)
	return err
}

// An auditSum adds up chains that are whole.
type auditSum struct {
	rows, unkeyed int64
	since         time.Time // of the oldest row under the key
}

func (a *auditSum) add(c *rules.ChainCheck) {
	a.rows += c.No
	a.unkeyed += c.Unkeyed
	if !c.Since.IsZero() && (a.since.IsZero() || c.Since.Before(a.since)) {
		a.since = c.Since
	}
}

func (a auditSum) String() string {
	if a.rows == 0 {
		return "All is well: nothing is on record yet."
	}
	older := ""
	if a.unkeyed > 0 {
		older = fmt.Sprintf(", %d of them from before", a.unkeyed)
	}
	return fmt.Sprintf("All is well: %d rows, under the server's key since %s%s.",
		a.rows, a.since.Format(time.RFC3339), older)
}

// expected is what must be in which row.
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

// verifyChain says in words what is wrong with a chain; nothing if it is whole.
func verifyChain(ctx context.Context, logs parley.TenantStore, check *rules.ChainCheck,
	expected map[int64]string) (wrong string, err error) {
	for {
		page, err := logs.AuditChain(ctx, check.No, 1000)
		if err != nil {
			return "", err
		}
		if bad, why := check.Add(page); bad != nil {
			return fmt.Sprintf("row %d is not as it was written: it %s (%s at %s)",
				bad.No, why, bad.Action, bad.At.Format(time.RFC3339)), nil
		}
		for _, r := range page {
			if want := expected[r.No]; want != "" && want != r.Hash {
				return fmt.Sprintf("row %d is another than before", r.No), nil
			}
			delete(expected, r.No)
		}
		if len(page) == 0 {
			break
		}
	}
	for missing := range expected {
		return fmt.Sprintf("row %d is gone: the record ends at %d", missing, check.No), nil
	}
	if check.No > 0 && check.Unkeyed == check.No {
		return fmt.Sprintf("no row is under the server's key; all %d may be forged. "+
			"If they are of an earlier release, start the server once", check.No), nil
	}
	return "", nil
}

// sealAudit puts a row under the key at the end of every chain that has none,
// which an earlier release wrote. So it shows up if rows without a key are added
// or changed later.
func sealAudit(ctx context.Context, store store, key rules.AuditKey, log *slog.Logger) error {
	tenants, err := store.Tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		rows, err := store.Tenant(tenant).Audited(ctx, parley.AuditQuery{Limit: 2}) // the newest first
		if err != nil {
			return err
		}
		before := ""
		if len(rows) == 2 {
			before = rows[1].Hash
		}
		switch {
		case len(rows) == 0 || rules.Sum(key, rows[0], before) == rows[0].Hash:
		case rules.Sum(nil, rows[0], before) == rows[0].Hash:
			log.Warn("the audit has no key yet and is sealed; this is expected once, after an upgrade",
				"tenant", tenant, "rows", rows[0].No)
			record := parley.Audit{At: time.Now(), Action: parley.AuditSealed, Resource: "audit", Source: "system",
				Metadata: parley.Metadata(map[string]any{"rows": rows[0].No})}
			if _, err := store.Append(ctx, parley.Batch{Tenant: tenant, Audit: []parley.Audit{record}}); err != nil {
				return err
			}
		default:
			log.Warn("the audit was changed, or written under another server key; parley audit verify says where",
				"tenant", tenant)
		}
	}
	return nil
}
