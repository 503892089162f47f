-- about: Numbers sessions and stores their events in the order of commits, which copies every event.
-- rows: all sessions events
-- +goose Up

-- Events name their session by a number, stand in the order in which they were
-- committed, and have one small index by session and one by position. What many
-- sessions append at once then lands on few pages, and a commit costs what it
-- writes: see docs/adr/0009.

CREATE TABLE numbered_sessions (
    no         INTEGER PRIMARY KEY, -- what events call it
    tenant     TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    root       TEXT    NOT NULL,
    owner      TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    title      TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    run        INTEGER NOT NULL, -- the open one, or 0
    transient  INTEGER NOT NULL,
    deleted    INTEGER NOT NULL,
    head       INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,
    opened_at  INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    hour       INTEGER NOT NULL, -- of updated_at: an index on it seldom changes
    UNIQUE (tenant, id)
);
INSERT INTO numbered_sessions (tenant, id, root, owner, agent, title, status, run, transient, deleted, head, epoch, opened_at, updated_at, hour)
    SELECT tenant, id, root, owner, agent, title, status, run, transient, deleted, head, epoch, opened_at, updated_at, updated_at / 3600000000
    FROM sessions ORDER BY opened_at;

CREATE TABLE numbered_events (
    no       INTEGER PRIMARY KEY,
    tenant   TEXT    NOT NULL,
    session  INTEGER NOT NULL, -- sessions.no
    seq      INTEGER NOT NULL,
    position INTEGER NOT NULL,
    root     TEXT,             -- NULL: its session is the root
    at       INTEGER NOT NULL,
    run      INTEGER NOT NULL,
    by       TEXT    NOT NULL,
    type     TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    piece    INTEGER NOT NULL, -- a piece of an output, which a finishing event repeats
    body     TEXT    NOT NULL
);
INSERT INTO numbered_events (tenant, session, seq, position, root, at, run, by, type, version, piece, body)
    SELECT e.tenant, s.no, e.seq, e.position, nullif(e.root, e.session), e.at, e.run, e.by, e.type, e.version, e.piece, e.body
    FROM events e JOIN numbered_sessions s ON s.tenant = e.tenant AND s.id = e.session
    ORDER BY e.tenant, e.position;

DROP TABLE events;
DROP TABLE sessions;
ALTER TABLE numbered_sessions RENAME TO sessions;
ALTER TABLE numbered_events RENAME TO events;
CREATE INDEX sessions_recent ON sessions (tenant, hour DESC);
CREATE UNIQUE INDEX events_seq ON events (session, seq);
CREATE UNIQUE INDEX events_position ON events (tenant, position);
CREATE INDEX events_tree ON events (tenant, root, position) WHERE root IS NOT NULL;

-- Pieces that were deleted because an OutputFinished repeats them. Any other seq
-- that is missing was lost.
CREATE TABLE holes (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    first   INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    PRIMARY KEY (tenant, session, first)
) WITHOUT ROWID;
-- Up to which position a tenant's log was searched for such pieces.
ALTER TABLE tenants ADD COLUMN trimmed INTEGER NOT NULL DEFAULT 0;
