-- about: Adds lists of runs, approvals and questions, and fills them from the logs.
-- rows: some events sessions
-- +goose Up

-- Every run of every session that is not deleted, and everything that waits for a
-- person: rows by which they are found. They follow from the events, and what was
-- said is in those alone: see docs/adr/0017.
CREATE TABLE runs (
    tenant         TEXT COLLATE "C" NOT NULL,
    session        TEXT COLLATE "C" NOT NULL,
    run            BIGINT           NOT NULL, -- the seq of its RunStarted
    owner          TEXT COLLATE "C" NOT NULL, -- of the session
    agent          TEXT COLLATE "C" NOT NULL,
    request        TEXT COLLATE "C" NOT NULL,
    parent_session TEXT COLLATE "C",          -- where the session of a sub-agent comes from
    parent_run     BIGINT,
    parent_call    BIGINT,
    parent_depth   INTEGER,
    outcome        TEXT COLLATE "C" NOT NULL, -- empty: still open
    code           TEXT COLLATE "C" NOT NULL,
    message        TEXT             NOT NULL,
    input_tokens   BIGINT           NOT NULL,
    output_tokens  BIGINT           NOT NULL,
    cached_tokens  BIGINT           NOT NULL,
    written_tokens BIGINT           NOT NULL,
    cost_micros    BIGINT           NOT NULL, -- millionths of a US dollar
    started_at     TIMESTAMPTZ      NOT NULL,
    ended_at       TIMESTAMPTZ,               -- NULL: still open
    PRIMARY KEY (tenant, session, run)
);
CREATE INDEX runs_recent ON runs (tenant, started_at);
CREATE INDEX runs_owned ON runs (tenant, owner, started_at);
CREATE INDEX runs_open ON runs (tenant, session) WHERE outcome = '';
CREATE INDEX runs_children ON runs (tenant, parent_session, parent_run) WHERE parent_session IS NOT NULL;

CREATE TABLE cards (
    tenant   TEXT COLLATE "C" NOT NULL,
    session  TEXT COLLATE "C" NOT NULL,
    seq      BIGINT           NOT NULL, -- of the card, or of the call whose outcome is unknown
    kind     TEXT COLLATE "C" NOT NULL, -- approval, question, call
    run      BIGINT           NOT NULL,
    call     BIGINT           NOT NULL,
    owner    TEXT COLLATE "C" NOT NULL, -- of the session
    asked_at TIMESTAMPTZ      NOT NULL,
    PRIMARY KEY (tenant, session, seq)
);
CREATE INDEX cards_asked ON cards (tenant, asked_at);
CREATE INDEX cards_owned ON cards (tenant, owner, asked_at);

-- What the events of earlier releases imply. A body that cannot be read is the
-- trouble of its session, and not to keep the others from being served; nor is a
-- text that PostgreSQL does not hold. A text is written as the store writes it,
-- where \x1a begins an escaped byte.
-- +goose StatementBegin
CREATE FUNCTION parley_field(body TEXT, VARIADIC path TEXT[]) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN replace(body::json #>> path, E'\x1a', E'\x1a1a');
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$$;
-- +goose StatementEnd

ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE events NO FORCE ROW LEVEL SECURITY;

INSERT INTO runs (tenant, session, run, owner, agent, request, outcome, code, message, input_tokens, output_tokens, cached_tokens, written_tokens, cost_micros, started_at)
    SELECT e.tenant, e.session, e.seq, s.owner, coalesce(parley_field(e.body, 'agent', 'name'), ''), coalesce(parley_field(e.body, 'request'), ''),
        '', '', '', 0, 0, 0, 0, 0, e.at
    FROM events e JOIN sessions s ON s.tenant = e.tenant AND s.id = e.session
    WHERE e.type = 'RunStarted' AND NOT s.deleted;
UPDATE runs SET outcome = coalesce(parley_field(e.body, 'outcome'), 'failed'), code = coalesce(parley_field(e.body, 'code'), ''),
        message = coalesce(parley_field(e.body, 'message'), ''), input_tokens = coalesce(parley_field(e.body, 'usage', 'input'), '0')::bigint,
        output_tokens = coalesce(parley_field(e.body, 'usage', 'output'), '0')::bigint,
        cached_tokens = coalesce(parley_field(e.body, 'usage', 'cached'), '0')::bigint, ended_at = e.at
    FROM events e
    WHERE e.type = 'RunFinished' AND runs.tenant = e.tenant AND runs.session = e.session AND runs.run = e.run;
UPDATE runs SET parent_session = parley_field(e.body, 'parent', 'session'), parent_run = parley_field(e.body, 'parent', 'run')::bigint,
        parent_call = parley_field(e.body, 'parent', 'call')::bigint, parent_depth = parley_field(e.body, 'parent', 'depth')::integer
    FROM events e
    WHERE e.seq = 1 AND e.type = 'SessionOpened' AND e.root <> e.session AND parley_field(e.body, 'parent', 'session') IS NOT NULL
        AND runs.tenant = e.tenant AND runs.session = e.session;
INSERT INTO cards (tenant, session, seq, kind, run, call, owner, asked_at)
    SELECT e.tenant, e.session, CASE e.type WHEN 'ToolCallFinished' THEN parley_field(e.body, 'call')::bigint ELSE e.seq END,
        CASE e.type WHEN 'ApprovalRequested' THEN 'approval' WHEN 'QuestionAsked' THEN 'question' ELSE 'call' END,
        e.run, parley_field(e.body, 'call')::bigint, s.owner, e.at
    FROM sessions s JOIN events e ON e.tenant = s.tenant AND e.session = s.id AND e.seq > s.run AND e.run = s.run
    WHERE s.run <> 0 AND NOT s.deleted AND parley_field(e.body, 'call') IS NOT NULL
        AND (e.type IN ('ApprovalRequested', 'QuestionAsked') OR e.type = 'ToolCallFinished' AND parley_field(e.body, 'outcome') = 'unknown')
        AND NOT EXISTS (SELECT FROM events d WHERE d.tenant = e.tenant AND d.session = e.session AND d.seq > e.seq
            AND (d.type IN ('ApprovalDecided', 'QuestionAnswered') AND parley_field(d.body, 'card') = e.seq::text
                OR d.type = 'ToolCallResolved' AND e.type = 'ToolCallFinished' AND parley_field(d.body, 'call') = parley_field(e.body, 'call')));

DROP FUNCTION parley_field;
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
ALTER TABLE events FORCE ROW LEVEL SECURITY;

-- +goose StatementBegin
DO $$
DECLARE
    name TEXT;
    here TEXT := $here$tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2)$here$;
BEGIN
    FOREACH name IN ARRAY ARRAY['runs', 'cards']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I USING (%s) WITH CHECK (%s)', name, here, here);
    END LOOP;
END
$$;
-- +goose StatementEnd
