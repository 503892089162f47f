-- about: Adds legal holds, which keep sessions from deletion.
-- rows: none
-- +goose Up

-- Sessions and users whose sessions are kept, whatever retention and erasure want: see docs/keeping.md.
CREATE TABLE legal_holds (
    tenant TEXT    NOT NULL,
    kind   TEXT    NOT NULL, -- session or user
    id     TEXT    NOT NULL, -- of that
    reason TEXT    NOT NULL,
    by     TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, id)
) WITHOUT ROWID;

-- Retention deletes a session with its sub-agents.
CREATE INDEX sessions_children ON sessions (tenant, root) WHERE root <> id;
