-- about: Adds timers, and the number of attempts of effects.
-- rows: some effects
-- +goose Up

-- Every timer of every session that is not deleted. Rows follow from the events,
-- which alone decide: see docs/adr/0017.
CREATE TABLE timers (
    tenant      TEXT    NOT NULL,
    session_key TEXT    NOT NULL,
    id          INTEGER NOT NULL, -- the seq of its TimerSet
    run         INTEGER NOT NULL, -- in which it was set, or 0
    owner       TEXT    NOT NULL, -- of the session
    agent       TEXT    NOT NULL,
    source      TEXT    NOT NULL, -- tool, evaluator
    payload     TEXT    NOT NULL, -- {"reason", "message"}
    status      TEXT    NOT NULL, -- pending, promoted (it has fired), cancelled
    why         TEXT    NOT NULL, -- it was cancelled, or waits for longer
    fire_at     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, session_key, id)
) WITHOUT ROWID;
CREATE INDEX timers_due ON timers (tenant, status, fire_at);
CREATE INDEX timers_latest ON timers (tenant, fire_at);
CREATE INDEX timers_owned ON timers (tenant, owner, fire_at);

-- How often somebody came for it, until when it is executing, and why it was not
-- delivered. The status is pending, executing, completed, failed or cancelled.
ALTER TABLE effects ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE effects ADD COLUMN last_attempt_at INTEGER;
ALTER TABLE effects ADD COLUMN leased_until INTEGER;
ALTER TABLE effects ADD COLUMN why TEXT NOT NULL DEFAULT '';
UPDATE effects SET attempts = 1, last_attempt_at = updated_at WHERE status = 'completed';
CREATE INDEX effects_recent ON effects (tenant, created_at);
-- What is owed is little, what was delivered grows.
DROP INDEX effects_status;
CREATE INDEX effects_owed ON effects (tenant, session_key) WHERE status IN ('pending', 'executing');
CREATE INDEX effects_open ON effects (tenant, created_at, leased_until) WHERE status IN ('pending', 'executing');
