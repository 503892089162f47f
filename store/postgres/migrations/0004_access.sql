-- about: Adds tickets and revoked tokens.
-- rows: none
-- +goose Up

-- Tickets that wait to be used, by the hash of each. claim is JSON.
CREATE TABLE tickets (
    hash       BYTEA            NOT NULL,
    tenant     TEXT COLLATE "C" NOT NULL,
    principal  TEXT COLLATE "C" NOT NULL,
    expires_at TIMESTAMPTZ      NOT NULL,
    claim      TEXT             NOT NULL,
    PRIMARY KEY (hash, tenant)
);
CREATE INDEX tickets_of ON tickets (tenant, principal);

-- Up to when tokens of a principal are no longer good.
CREATE TABLE revocations (
    tenant    TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    before    TIMESTAMPTZ      NOT NULL,
    PRIMARY KEY (tenant, principal)
);
