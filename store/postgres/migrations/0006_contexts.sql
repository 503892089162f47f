-- about: Adds what users want agents to know.
-- rows: none
-- +goose Up

-- What a user wants an agent to know in every session of theirs.
CREATE TABLE contexts (
    tenant    TEXT COLLATE "C" NOT NULL,
    agent     TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    body      TEXT             NOT NULL,
    at        TIMESTAMPTZ      NOT NULL,
    PRIMARY KEY (tenant, agent, principal)
);

-- See 0005.
-- +goose StatementBegin
DO $$
DECLARE
    here TEXT := $here$tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2)$here$;
BEGIN
    ALTER TABLE contexts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
    EXECUTE format('CREATE POLICY tenant ON contexts USING (%s) WITH CHECK (%s)', here, here);
END
$$;
-- +goose StatementEnd
