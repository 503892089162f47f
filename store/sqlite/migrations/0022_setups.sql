-- about: Adds keys of models and MCP servers that are set up in the console, and an index of the audit by session.
-- rows: all audit
-- +goose Up

-- What administrators set up in the console, with its secrets, sealed by the server's key. See docs/secrets.md.
CREATE TABLE setups (
    tenant TEXT    NOT NULL,
    kind   TEXT    NOT NULL, -- model or mcp
    name   TEXT    NOT NULL, -- of the vendor or the server
    sealed BLOB    NOT NULL,
    by     TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, name)
) WITHOUT ROWID;

-- The session of a record: the one in which it happened, or else the one that it is about. A record that was changed
-- behind the server's back may hold no JSON, and must still be found by parley audit verify.
CREATE INDEX audit_session ON audit (tenant, coalesce(CASE WHEN json_valid(metadata) THEN metadata ->> '$.session' END,
    CASE resource WHEN 'session' THEN resource_id ELSE '' END), no);
