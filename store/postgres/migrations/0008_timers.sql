-- about: Adds timers, and the number of attempts of effects.
-- rows: some effects
-- +goose Up

-- Every timer of every session that is not deleted. Rows follow from the events,
-- which alone decide: see docs/adr/0017.
CREATE TABLE timers (
    tenant      TEXT COLLATE "C" NOT NULL,
    session_key TEXT COLLATE "C" NOT NULL,
    id          BIGINT           NOT NULL, -- the seq of its TimerSet
    run         BIGINT           NOT NULL, -- in which it was set, or 0
    owner       TEXT COLLATE "C" NOT NULL, -- of the session
    agent       TEXT COLLATE "C" NOT NULL,
    source      TEXT COLLATE "C" NOT NULL, -- tool, evaluator
    payload     JSON             NOT NULL, -- {"reason", "message"}
    status      TEXT COLLATE "C" NOT NULL, -- pending, promoted (it has fired), cancelled
    why         TEXT COLLATE "C" NOT NULL, -- it was cancelled, or waits for longer
    fire_at     TIMESTAMPTZ      NOT NULL,
    created_at  TIMESTAMPTZ      NOT NULL,
    updated_at  TIMESTAMPTZ      NOT NULL,
    PRIMARY KEY (tenant, session_key, id)
);
CREATE INDEX timers_due ON timers (tenant, status, fire_at);
CREATE INDEX timers_latest ON timers (tenant, fire_at);
CREATE INDEX timers_owned ON timers (tenant, owner, fire_at);

-- How often somebody came for it, until when it is executing, and why it was not
-- delivered. The status is pending, executing, completed, failed or cancelled.
ALTER TABLE effects ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0, ADD COLUMN last_attempt_at TIMESTAMPTZ,
    ADD COLUMN leased_until TIMESTAMPTZ,
    ADD COLUMN why TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE effects NO FORCE ROW LEVEL SECURITY;
UPDATE effects SET attempts = 1, last_attempt_at = updated_at WHERE status = 'completed';
ALTER TABLE effects FORCE ROW LEVEL SECURITY;
CREATE INDEX effects_recent ON effects (tenant, created_at);
-- What is owed is little, what was delivered grows.
DROP INDEX effects_status;
CREATE INDEX effects_owed ON effects (tenant, session_key) WHERE status IN ('pending', 'executing');
CREATE INDEX effects_open ON effects (tenant, created_at, leased_until) WHERE status IN ('pending', 'executing');

-- +goose StatementBegin
DO $$
DECLARE
    here TEXT := $here$tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2)$here$;
BEGIN
    ALTER TABLE timers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
    EXECUTE format('CREATE POLICY tenant ON timers USING (%s) WITH CHECK (%s)', here, here);
END
$$;
-- +goose StatementEnd
