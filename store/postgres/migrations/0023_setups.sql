-- about: Adds keys of models and MCP servers that are set up in the console, and an index of the audit by session.
-- rows: all audit
-- +goose Up

-- What administrators set up in the console, with its secrets, sealed by the server's key. See docs/secrets.md.
CREATE TABLE setups (
    tenant TEXT COLLATE "C" NOT NULL,
    kind   TEXT COLLATE "C" NOT NULL, -- model or mcp
    name   TEXT COLLATE "C" NOT NULL, -- of the vendor or the server
    sealed BYTEA            NOT NULL,
    by     TEXT COLLATE "C" NOT NULL,
    at     TIMESTAMPTZ      NOT NULL,
    PRIMARY KEY (tenant, kind, name)
);
ALTER TABLE setups ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON setups
    USING (tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2))
    WITH CHECK (tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2));
-- A node learns of those that other nodes were given. They are encrypted.
CREATE POLICY maintenance ON setups FOR SELECT USING (current_setting('parley.scope', true) = 'maintenance');

-- The session of a record: the one in which it happened, or else the one that it is about. Metadata may hold \u0000,
-- which PostgreSQL takes out of no JSON.
CREATE INDEX audit_session ON audit (tenant, coalesce(substring(metadata FROM '"session":"([^"\\]+)"'),
    CASE resource WHEN 'session' THEN resource_id ELSE '' END), no);
