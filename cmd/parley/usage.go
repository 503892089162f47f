package main

import (
	"fmt"

	"parley"
	"parley/config"
	"parley/port"
)

// quotasOf returns the quotas of each tenant, or nil if there are none.
func quotasOf(c *config.Settings) func(parley.TenantID) port.Quotas {
	if !c.Quotas.Any() {
		return nil
	}
	return c.Quotas.Of
}

type usageCommand struct {
	listFlags
	Day string `placeholder:"DAY" help:"Day of UTC, such as 2026-11-30 (default: today)."`
}

func (*usageCommand) Help() string {
	return `A user sees their own usage; an org_admin also that of the tenant and of its other users.

Example:

  $ parley usage --day 2026-11-30`
}

// Run prints the usage that a server reports.
func (c *usageCommand) Run(p *program) error {
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	report, err := to.Usage(p.ctx, c.Day)
	if err != nil {
		return err
	}
	rows := table{{"USER", "SESSIONS", "CALLS", "TOKENS", "COST", "STORED"}}
	users := report.Users
	if report.Tenant == nil {
		users = []port.UsageOf{report.User}
	}
	for _, u := range users {
		rows = append(rows, usageRow(u.ID, u))
	}
	if report.Tenant != nil {
		rows = append(rows, usageRow("(tenant "+report.Tenant.ID+")", *report.Tenant))
	}
	return c.print(p, report, rows, "Nothing was used.")
}

// usageRow shows the usage and, where there is a quota, its limit.
func usageRow(name string, u port.UsageOf) []string {
	of := func(used, limit string, limited bool) string {
		if !limited {
			return used
		}
		return used + " of " + limit
	}
	q := u.Quota
	dollars := func(micros int64) string { return fmt.Sprintf("$%.4f", float64(micros)/1e6) }
	megabytes := func(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20)) }
	return []string{name, of(fmt.Sprint(u.Used.Sessions), fmt.Sprint(q.Sessions), q.Sessions > 0),
		fmt.Sprint(u.Used.Calls),
		of(fmt.Sprint(u.Used.Input+u.Used.Output), fmt.Sprint(q.Tokens), q.Tokens > 0),
		of(dollars(u.Used.CostMicros), dollars(q.Micros), q.Micros > 0),
		of(megabytes(u.Used.Storage), megabytes(q.Storage), q.Storage > 0)}
}
