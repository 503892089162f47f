-- about: Adds webhooks.
-- rows: none
-- +goose Up

-- Webhooks of sessions, by the session's id: where to, and by what messages are
-- signed, sealed by the server's key. Of an agent, whose webhook is in its file,
-- there is a row, under agent: and its name, once the receiver wants no more.
CREATE TABLE webhooks (
    tenant   TEXT    NOT NULL,
    session  TEXT    NOT NULL,
    url      TEXT    NOT NULL,
    sealed   BLOB    NOT NULL,
    target   TEXT    NOT NULL, -- host:port
    finished INTEGER NOT NULL, -- it is told when runs end
    needed   INTEGER NOT NULL, -- and when a person is needed
    set_at   INTEGER NOT NULL,
    gone_at  INTEGER NOT NULL, -- the receiver wants no more; 0: it does
    PRIMARY KEY (tenant, session)
) WITHOUT ROWID;

-- Of effects of type webhook: who is told, and when that is tried next. While it
-- is being tried, that is when somebody else may.
ALTER TABLE effects ADD COLUMN target TEXT NOT NULL DEFAULT '';
ALTER TABLE effects ADD COLUMN next_attempt_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX effects_hooks ON effects (next_attempt_at) WHERE type = 'webhook' AND status IN ('pending', 'executing');
