-- about: Creates the tables of sessions, events, snapshots and effects.
-- rows: none
-- +goose Up

-- Ids compare byte by byte (COLLATE "C"): they have no language, and their
-- indexes must not depend on the libraries of the machine.

-- One row: the random name of this history. See parley.Store.Epoch.
CREATE TABLE store (
    epoch TEXT NOT NULL
);

-- The tenant's head: the last position given out. Whoever appends to a tenant
-- holds its row until the commit, so positions become visible in order.
CREATE TABLE tenants (
    tenant   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    position BIGINT           NOT NULL
) WITH (fillfactor = 20); -- rewritten by every commit: leave room to do it in place

-- A session's head and what lists show of it. head and epoch fence appends.
CREATE TABLE sessions (
    tenant     TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    root       TEXT COLLATE "C" NOT NULL,
    owner      TEXT COLLATE "C" NOT NULL,
    agent      TEXT COLLATE "C" NOT NULL,
    title      TEXT             NOT NULL,
    status     TEXT COLLATE "C" NOT NULL,
    run        BIGINT           NOT NULL, -- the open one, or 0
    transient  BOOLEAN          NOT NULL,
    deleted    BOOLEAN          NOT NULL,
    head       BIGINT           NOT NULL,
    epoch      BIGINT           NOT NULL,
    opened_at  TIMESTAMPTZ      NOT NULL,
    updated_at TIMESTAMPTZ      NOT NULL,
    recent     TIMESTAMP        NOT NULL GENERATED ALWAYS AS (date_trunc('hour', updated_at AT TIME ZONE 'UTC')) STORED,
    PRIMARY KEY (tenant, id)
) WITH (fillfactor = 50);
-- Every append changes updated_at. An index on it would have each of them
-- rewrite all index entries of the session, and make appends five times slower;
-- one on the hour lets rows be rewritten in place, and lists sort what is left.
CREATE INDEX sessions_recent ON sessions (tenant, recent DESC);

-- body is JSON in a column of type text. It comes back byte for byte, it may say
-- \u0000, which JSONB refuses, and its size is known without reading it.
CREATE TABLE events (
    tenant   TEXT COLLATE "C" NOT NULL,
    session  TEXT COLLATE "C" NOT NULL,
    seq      BIGINT           NOT NULL,
    position BIGINT           NOT NULL,
    root     TEXT COLLATE "C" NOT NULL,
    at       TIMESTAMPTZ      NOT NULL,
    run      BIGINT           NOT NULL,
    by       TEXT COLLATE "C" NOT NULL,
    type     TEXT COLLATE "C" NOT NULL,
    version  INTEGER          NOT NULL,
    piece    BOOLEAN          NOT NULL, -- a piece of an output, which a finishing event repeats
    body     TEXT             NOT NULL,
    PRIMARY KEY (tenant, session, seq)
);
CREATE UNIQUE INDEX events_position ON events (tenant, position);
CREATE INDEX events_tree ON events (tenant, root, position);

CREATE TABLE receipts (
    tenant  TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    command TEXT COLLATE "C" NOT NULL,
    by      TEXT COLLATE "C" NOT NULL,
    digest  TEXT COLLATE "C" NOT NULL,
    first   BIGINT           NOT NULL,
    last    BIGINT           NOT NULL,
    PRIMARY KEY (tenant, session, command)
);

-- The processes that use this database. One that was not seen for a while, by
-- this database's clock, is dead, and so are the leases that name it.
CREATE TABLE nodes (
    id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    seen_at TIMESTAMPTZ      NOT NULL
) WITH (fillfactor = 20);

-- How work is found: at most one row a session. lease names the node whose
-- actor takes care of it; empty: nobody.
CREATE TABLE due (
    tenant  TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    at      TIMESTAMPTZ      NOT NULL,
    reason  TEXT             NOT NULL,
    lease   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, session)
);
CREATE INDEX due_at ON due (at);

-- What a log folds to up to a seq; at most one row a session, and only a matter
-- of speed.
CREATE TABLE snapshots (
    tenant  TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    seq     BIGINT           NOT NULL,
    version INTEGER          NOT NULL,
    body    TEXT             NOT NULL,
    PRIMARY KEY (tenant, session)
);

-- Agents as runs started with them, by digest.
CREATE TABLE definitions (
    tenant TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    body   JSON             NOT NULL,
    PRIMARY KEY (tenant, digest)
);

-- The outbox: how far the delivery of each EffectEnqueued got.
CREATE TABLE effects (
    tenant      TEXT COLLATE "C" NOT NULL,
    session_key TEXT COLLATE "C" NOT NULL,
    id          BIGINT           NOT NULL, -- the seq of its event
    run         BIGINT           NOT NULL,
    type        TEXT COLLATE "C" NOT NULL,
    payload     JSON             NOT NULL,
    dedupe_key  TEXT COLLATE "C" NOT NULL,
    status      TEXT COLLATE "C" NOT NULL, -- pending, completed
    created_at  TIMESTAMPTZ      NOT NULL,
    updated_at  TIMESTAMPTZ      NOT NULL,
    PRIMARY KEY (tenant, session_key, id)
);
CREATE INDEX effects_status ON effects (tenant, session_key, status);

-- +goose Down
DROP TABLE effects;
DROP TABLE definitions;
DROP TABLE snapshots;
DROP TABLE due;
DROP TABLE nodes;
DROP TABLE receipts;
DROP TABLE events;
DROP TABLE sessions;
DROP TABLE tenants;
DROP TABLE store;
