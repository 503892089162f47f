-- about: Adds what servers that share the database know of each other.
-- rows: none
-- +goose Up

-- What a node says of itself, with every beat.
ALTER TABLE nodes
    ADD COLUMN since    TIMESTAMPTZ NOT NULL DEFAULT now(),
    ADD COLUMN address  TEXT        NOT NULL DEFAULT '',
    ADD COLUMN version  TEXT        NOT NULL DEFAULT '',
    ADD COLUMN agents   TEXT        NOT NULL DEFAULT '',
    ADD COLUMN sessions INTEGER     NOT NULL DEFAULT 0,
    ADD COLUMN draining BOOLEAN     NOT NULL DEFAULT false,
    ADD COLUMN projects JSONB       NOT NULL DEFAULT '[]';

-- The node whose actor has the session, if that node is alive; empty: none has.
ALTER TABLE sessions ADD COLUMN holder TEXT COLLATE "C" NOT NULL DEFAULT '';

-- The head of the tenant's own session, for nodes that remember what is in it.
ALTER TABLE tenants ADD COLUMN facts BIGINT NOT NULL DEFAULT 0;

-- The mark of the key that all nodes share, by which the key cannot be told. The
-- first node writes it.
CREATE TABLE key_mark (
    one  BOOLEAN NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
    mark TEXT    NOT NULL
);

-- Commands on their way to the node that has their session. body and answer are
-- sealed by the key that nodes share. A row goes with the transaction that appends
-- what the command comes to; what comes to nothing is answered in the row.
CREATE TABLE inbox (
    tenant  TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    command TEXT COLLATE "C" NOT NULL,
    node    TEXT COLLATE "C" NOT NULL,
    at      TIMESTAMPTZ      NOT NULL DEFAULT now(),
    body    BYTEA            NOT NULL,
    answer  BYTEA,
    PRIMARY KEY (tenant, session, command)
);
CREATE INDEX inbox_at ON inbox (at);
ALTER TABLE inbox ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON inbox
    USING (tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2))
    WITH CHECK (tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2));
CREATE POLICY maintenance ON inbox FOR SELECT USING (current_setting('parley.scope', true) = 'maintenance');
CREATE POLICY maintenance_end ON inbox FOR DELETE USING (current_setting('parley.scope', true) = 'maintenance');
