package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"parley"
	"parley/config"
)

type auditCommand struct {
	Verify auditVerifyCommand `cmd:"" help:"Check that nothing on record was changed, moved or left out."`
}

type auditVerifyCommand struct {
	config.Store
	Expect []string `placeholder:"TENANT:NO:HASH" help:"A row that verify printed before, and that must still be there: so a record whose end was cut off is found too."`
}

// Run reads every chain from its beginning. It prints the last row of each, to be
// kept elsewhere: who can write the whole database can also write another end.
func (c *auditVerifyCommand) Run(p *program) (err error) {
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
	for _, tenant := range tenants {
		name := string(tenant)
		if tenant == "" {
			name = "(server)"
		}
		rows, hash, wrong, err := verifyChain(p.ctx, store.Tenant(tenant), expected[tenant])
		switch {
		case err != nil:
			return err
		case wrong != "":
			bad++
			fmt.Fprintf(p.stdout, "%s: %s\n", name, wrong)
		case rows > 0:
			fmt.Fprintf(p.stdout, "%s: %d rows are as they were written; the last is %s:%d:%s\n", name, rows, tenant, rows, hash)
		}
		delete(expected, tenant)
	}
	for tenant := range expected {
		bad++
		fmt.Fprintf(p.stdout, "%s: nothing is on record\n", tenant)
	}
	if bad > 0 {
		return &parley.Error{Code: parley.CodeCorrupt, Message: fmt.Sprintf("%d records were tampered with.", bad), Hint: "compare with a backup"}
	}
	return nil
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
			return nil, fmt.Errorf("--expect %s: %s is no number of a row", e, parts[1])
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
func verifyChain(ctx context.Context, logs parley.TenantStore, expected map[int64]string) (no int64, hash, wrong string, err error) {
	for {
		page, err := logs.AuditChain(ctx, no, 1000)
		if err != nil {
			return no, hash, "", err
		}
		if bad := parley.VerifyChain(no, hash, page); bad != nil {
			return no, hash, fmt.Sprintf("row %d is not as it was written, or does not follow on the one before it (%s at %s)", bad.No, bad.Action, bad.At.Format("2006-01-02T15:04:05Z07:00")), nil
		}
		for _, r := range page {
			if want := expected[r.No]; want != "" && want != r.Hash {
				return no, hash, fmt.Sprintf("row %d is another than before", r.No), nil
			}
			delete(expected, r.No)
			no, hash = r.No, r.Hash
		}
		if len(page) == 0 {
			for missing := range expected {
				return no, hash, fmt.Sprintf("row %d is gone: the record ends at %d", missing, no), nil
			}
			return no, hash, "", nil
		}
	}
}
