-- about: Adds the audit log.
-- rows: none
-- +goose Up

-- The record of security decisions: a chain of rows per tenant, each with a hash
-- over itself and the row before it. The server's own chain has no tenant.
CREATE TABLE audit (
    tenant      TEXT COLLATE "C" NOT NULL,
    no          BIGINT           NOT NULL,
    at          TIMESTAMPTZ      NOT NULL,
    by          TEXT COLLATE "C" NOT NULL,
    action      TEXT COLLATE "C" NOT NULL,
    resource    TEXT COLLATE "C" NOT NULL,
    resource_id TEXT COLLATE "C" NOT NULL,
    source      TEXT COLLATE "C" NOT NULL,
    metadata    TEXT             NOT NULL,
    hash        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, no)
);
CREATE INDEX audit_action ON audit (tenant, action, no);
CREATE INDEX audit_by ON audit (tenant, by, no);

-- The last row of a tenant's chain.
ALTER TABLE tenants ADD COLUMN audit_no BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN audit_hash TEXT COLLATE "C" NOT NULL DEFAULT '';
