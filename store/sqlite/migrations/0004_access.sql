-- about: Adds tickets and revoked tokens.
-- rows: none
-- +goose Up

-- Tickets that wait to be used, by the hash of each. claim is JSON.
CREATE TABLE tickets (
    hash       BLOB    NOT NULL,
    tenant     TEXT    NOT NULL,
    principal  TEXT    NOT NULL,
    expires_at INTEGER NOT NULL,
    claim      TEXT    NOT NULL,
    PRIMARY KEY (hash, tenant)
) WITHOUT ROWID;
CREATE INDEX tickets_of ON tickets (tenant, principal);

-- Up to when tokens of a principal are no longer good.
CREATE TABLE revocations (
    tenant    TEXT    NOT NULL,
    principal TEXT    NOT NULL,
    before    INTEGER NOT NULL,
    PRIMARY KEY (tenant, principal)
) WITHOUT ROWID;
