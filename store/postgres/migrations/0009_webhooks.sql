-- about: Adds webhooks.
-- rows: none
-- +goose Up

-- Webhooks of sessions, by the session's id: where to, and by what messages are
-- signed, sealed by the server's key. Of an agent, whose webhook is in its file,
-- there is a row, under agent: and its name, once the receiver wants no more.
CREATE TABLE webhooks (
    tenant   TEXT COLLATE "C" NOT NULL,
    session  TEXT COLLATE "C" NOT NULL,
    url      TEXT             NOT NULL,
    sealed   BYTEA            NOT NULL,
    target   TEXT COLLATE "C" NOT NULL, -- host:port
    finished BOOLEAN          NOT NULL, -- it is told when runs end
    needed   BOOLEAN          NOT NULL, -- and when a person is needed
    set_at   TIMESTAMPTZ      NOT NULL,
    gone_at  TIMESTAMPTZ,               -- the receiver wants no more
    PRIMARY KEY (tenant, session)
);

-- Of effects of type webhook: who is told, and when that is tried next. While it
-- is being tried, that is when somebody else may.
ALTER TABLE effects ADD COLUMN target TEXT COLLATE "C" NOT NULL DEFAULT '', ADD COLUMN next_attempt_at TIMESTAMPTZ;
CREATE INDEX effects_hooks ON effects (next_attempt_at) WHERE type = 'webhook' AND status IN ('pending', 'executing');

-- See 0005.
-- +goose StatementBegin
DO $$
DECLARE
    here TEXT := $here$tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2)$here$;
BEGIN
    ALTER TABLE webhooks ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
    EXECUTE format('CREATE POLICY tenant ON webhooks USING (%s) WITH CHECK (%s)', here, here);
END
$$;
-- +goose StatementEnd

-- What is to be told, and how much waits, has to be found of whomever. Neither
-- table holds anything that was said.
CREATE POLICY maintenance ON effects FOR SELECT USING (current_setting('parley.scope', true) = 'maintenance');
CREATE POLICY maintenance ON cards FOR SELECT USING (current_setting('parley.scope', true) = 'maintenance');
