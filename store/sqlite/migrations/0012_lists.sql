-- about: Adds indexes for lists of sessions.
-- rows: all sessions
-- +goose Up

-- Lists show the sessions that are neither deleted nor of a single connection,
-- by the second of their last change: an index on it changes at most once a
-- second for a session. See docs/adr/0064.
ALTER TABLE sessions RENAME COLUMN hour TO recent;
DROP INDEX sessions_recent;
UPDATE sessions SET recent = updated_at / 1000000;
CREATE INDEX sessions_listed ON sessions (tenant, recent DESC) WHERE deleted = 0 AND transient = 0;
CREATE INDEX sessions_owned ON sessions (tenant, owner, recent DESC) WHERE deleted = 0 AND transient = 0;
