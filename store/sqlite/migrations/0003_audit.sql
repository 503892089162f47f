-- about: Adds the audit log.
-- rows: none
-- +goose Up

-- The record of security decisions: a chain of rows per tenant, each with a hash
-- over itself and the row before it. The server's own chain has no tenant.
CREATE TABLE audit (
    tenant      TEXT    NOT NULL,
    no          INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    by          TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    resource    TEXT    NOT NULL,
    resource_id TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    metadata    TEXT    NOT NULL,
    hash        TEXT    NOT NULL,
    PRIMARY KEY (tenant, no)
) WITHOUT ROWID;
CREATE INDEX audit_action ON audit (tenant, action, no);
CREATE INDEX audit_by ON audit (tenant, by, no);

-- The last row of a tenant's chain.
ALTER TABLE tenants ADD COLUMN audit_no INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN audit_hash TEXT NOT NULL DEFAULT '';
