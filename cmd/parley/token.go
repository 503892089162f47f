package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/access"
	"parley/config"
	"parley/port"
)

type tokenCommand struct {
	User   parley.PrincipalID `required:"" help:"User id in the token."`
	Tenant parley.TenantID    `default:"default" help:"Tenant of the user."`
	Role   []parley.UserRole  `default:"standard_user" help:"Roles of the user: org_admin, dept_head, standard_user, read_only."`
	TTL    time.Duration      `name:"ttl" default:"24h" help:"How long the token is valid."`
	config.Signing
	config.Store
}

// Help is printed below the usage.
func (*tokenCommand) Help() string {
	return `Example:

  $ export PARLEY_TOKEN=$(parley token --user ann --role org_admin)`
}

// Run prints an access token and nothing else.
func (c *tokenCommand) Run(p *program) error {
	if c.JWTSecret == "" {
		return errors.New("there is no secret to sign with; " +
			"set PARLEY_JWT_SECRET to the secret of the server, in the environment or in .env")
	}
	for _, role := range c.Role {
		if _, err := parley.ParseUserRole(string(role)); err != nil {
			return fmt.Errorf("--role %w", err)
		}
	}
	now, id := time.Now(), rand.Text()
	token, err := access.Mint(string(c.JWTSecret), access.Claims{Issuer: c.JWTIssuer, Audience: c.JWTAudience, ID: id,
		Principal: port.Principal{ID: c.User, Tenant: c.Tenant, Roles: c.Role}, Issued: now, Expires: now.Add(c.TTL)})
	if err != nil {
		return err
	}
	// The record is written before the token is printed.
	err = recordCommand(p, &c.Store, c.Tenant, port.AuditTokenMinted, "user", string(c.User),
		map[string]any{"roles": c.Role, "expires": now.Add(c.TTL).UTC().Format(time.RFC3339), "token": id})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, token)
	return err
}
