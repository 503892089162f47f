-- about: Adds pinned and archived sessions.
-- rows: none
-- +goose Up

-- What a user has noted about a session, for lists of their own.
CREATE TABLE marks (
    tenant    TEXT COLLATE "C" NOT NULL,
    session   TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    pinned    BOOLEAN          NOT NULL,
    archived  BOOLEAN          NOT NULL,
    read_at   TIMESTAMPTZ, -- when the user last looked at it
    PRIMARY KEY (tenant, session, principal)
);
ALTER TABLE marks ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON marks
    USING (tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2))
    WITH CHECK (tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2));
