-- about: Notes which erasures of users have begun and not ended.
-- rows: none
-- +goose Up

-- A row says that an erasure was begun, until everything of it is done: see docs/keeping.md.
CREATE TABLE erasures (
    tenant    TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL, -- who is erased
    by        TEXT COLLATE "C" NOT NULL,
    at        TIMESTAMPTZ      NOT NULL,
    artifacts TEXT             NOT NULL, -- JSON: names of files that have to go
    PRIMARY KEY (tenant, principal)
);
ALTER TABLE erasures ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON erasures
    USING (tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2))
    WITH CHECK (tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2));
