-- about: Creates the tables of sessions, events, snapshots and effects.
-- rows: none
-- +goose Up

-- One row: the random name of this history. See parley.Store.Epoch.
CREATE TABLE store (
    epoch TEXT NOT NULL
);

-- The tenant's head: the last position given out.
CREATE TABLE tenants (
    tenant   TEXT    NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL
) WITHOUT ROWID;

-- A session's head and what lists show of it. head and epoch fence appends.
CREATE TABLE sessions (
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
    opened_at  INTEGER NOT NULL, -- microseconds since 1970, like every time here
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE INDEX sessions_recent ON sessions (tenant, updated_at DESC);

CREATE TABLE events (
    tenant   TEXT    NOT NULL,
    session  TEXT    NOT NULL,
    seq      INTEGER NOT NULL,
    position INTEGER NOT NULL,
    root     TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    run      INTEGER NOT NULL,
    by       TEXT    NOT NULL,
    type     TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    piece    INTEGER NOT NULL, -- a piece of an output, which a finishing event repeats
    body     TEXT    NOT NULL,
    PRIMARY KEY (tenant, session, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX events_position ON events (tenant, position);
CREATE INDEX events_tree ON events (tenant, root, position);

-- What a log folds to up to a seq; at most one row a session, and only a matter
-- of speed.
CREATE TABLE snapshots (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body    TEXT    NOT NULL,
    PRIMARY KEY (tenant, session)
) WITHOUT ROWID;

CREATE TABLE receipts (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    command TEXT    NOT NULL,
    by      TEXT    NOT NULL,
    digest  TEXT    NOT NULL,
    first   INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    PRIMARY KEY (tenant, session, command)
) WITHOUT ROWID;

-- How work is found: at most one row a session. lease names the process whose
-- actor takes care of it; empty: nobody.
CREATE TABLE due (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    reason  TEXT    NOT NULL,
    lease   TEXT    NOT NULL,
    PRIMARY KEY (tenant, session)
) WITHOUT ROWID;
CREATE INDEX due_at ON due (lease, at);

-- Agents as runs started with them, by digest.
CREATE TABLE definitions (
    tenant TEXT NOT NULL,
    digest TEXT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (tenant, digest)
) WITHOUT ROWID;

-- The outbox: how far the delivery of each EffectEnqueued got.
CREATE TABLE effects (
    tenant      TEXT    NOT NULL,
    session_key TEXT    NOT NULL,
    id          INTEGER NOT NULL, -- the seq of its event
    run         INTEGER NOT NULL,
    type        TEXT    NOT NULL,
    payload     TEXT    NOT NULL,
    dedupe_key  TEXT    NOT NULL,
    status      TEXT    NOT NULL, -- pending, completed
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, session_key, id)
) WITHOUT ROWID;
CREATE INDEX effects_status ON effects (tenant, session_key, status);

-- +goose Down
DROP TABLE effects;
DROP TABLE definitions;
DROP TABLE due;
DROP TABLE receipts;
DROP TABLE snapshots;
DROP TABLE events;
DROP TABLE sessions;
DROP TABLE tenants;
DROP TABLE store;
