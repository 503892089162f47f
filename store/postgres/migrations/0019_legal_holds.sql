-- about: Adds legal holds, which keep sessions from deletion.
-- rows: none
-- +goose Up

-- Sessions and users whose sessions are kept, whatever retention and erasure want: see docs/keeping.md.
CREATE TABLE legal_holds (
    tenant TEXT COLLATE "C" NOT NULL,
    kind   TEXT COLLATE "C" NOT NULL, -- session or user
    id     TEXT COLLATE "C" NOT NULL, -- of that
    reason TEXT             NOT NULL,
    by     TEXT COLLATE "C" NOT NULL,
    at     TIMESTAMPTZ      NOT NULL,
    PRIMARY KEY (tenant, kind, id)
);
ALTER TABLE legal_holds ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON legal_holds
    USING (tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2))
    WITH CHECK (tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2));

-- Retention deletes a session with its sub-agents.
CREATE INDEX sessions_children ON sessions (tenant, root) WHERE root <> id;
