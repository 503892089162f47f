-- about: Adds lists of runs, approvals and questions, and fills them from the logs.
-- rows: some events sessions
-- +goose Up

-- Every run of every session that is not deleted, and everything that waits for a
-- person: rows by which they are found. They follow from the events, and what was
-- said is in those alone: see docs/adr/0017.
CREATE TABLE runs (
    tenant         TEXT    NOT NULL,
    session        TEXT    NOT NULL,
    run            INTEGER NOT NULL, -- the seq of its RunStarted
    owner          TEXT    NOT NULL, -- of the session
    agent          TEXT    NOT NULL,
    request        TEXT    NOT NULL,
    parent_session TEXT,             -- where the session of a sub-agent comes from
    parent_run     INTEGER,
    parent_call    INTEGER,
    parent_depth   INTEGER,
    outcome        TEXT    NOT NULL, -- empty: still open
    code           TEXT    NOT NULL,
    message        TEXT    NOT NULL,
    input_tokens   INTEGER NOT NULL,
    output_tokens  INTEGER NOT NULL,
    cached_tokens  INTEGER NOT NULL,
    written_tokens INTEGER NOT NULL,
    cost_micros    INTEGER NOT NULL, -- millionths of a US dollar
    started_at     INTEGER NOT NULL,
    ended_at       INTEGER NOT NULL, -- 0: still open
    PRIMARY KEY (tenant, session, run)
) WITHOUT ROWID;
CREATE INDEX runs_recent ON runs (tenant, started_at);
CREATE INDEX runs_owned ON runs (tenant, owner, started_at);
CREATE INDEX runs_open ON runs (tenant, session) WHERE outcome = '';
CREATE INDEX runs_children ON runs (tenant, parent_session, parent_run) WHERE parent_session IS NOT NULL;

CREATE TABLE cards (
    tenant   TEXT    NOT NULL,
    session  TEXT    NOT NULL,
    seq      INTEGER NOT NULL, -- of the card, or of the call whose outcome is unknown
    kind     TEXT    NOT NULL, -- approval, question, call
    run      INTEGER NOT NULL,
    call     INTEGER NOT NULL,
    owner    TEXT    NOT NULL, -- of the session
    asked_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, session, seq)
) WITHOUT ROWID;
CREATE INDEX cards_asked ON cards (tenant, asked_at);
CREATE INDEX cards_owned ON cards (tenant, owner, asked_at);

-- What the events of earlier releases imply. A body that cannot be read is the
-- trouble of its session, and not to keep the others from being served.
INSERT INTO runs (tenant, session, run, owner, agent, request, outcome, code, message, input_tokens, output_tokens, cached_tokens, written_tokens, cost_micros, started_at, ended_at)
    SELECT e.tenant, s.id, e.seq, s.owner, coalesce(json_extract(e.body, '$.agent.name'), ''), coalesce(json_extract(e.body, '$.request'), ''),
        '', '', '', 0, 0, 0, 0, 0, e.at, 0
    FROM events e JOIN sessions s ON s.no = e.session
    WHERE e.type = 'RunStarted' AND s.deleted = 0 AND json_valid(e.body);
UPDATE runs SET outcome = f.outcome, code = f.code, message = f.message,
        input_tokens = f.input, output_tokens = f.output, cached_tokens = f.cached, ended_at = f.at
    FROM (SELECT e.tenant, s.id AS session, e.run, e.at, coalesce(json_extract(e.body, '$.outcome'), 'failed') AS outcome,
            coalesce(json_extract(e.body, '$.code'), '') AS code, coalesce(json_extract(e.body, '$.message'), '') AS message,
            coalesce(json_extract(e.body, '$.usage.input'), 0) AS input, coalesce(json_extract(e.body, '$.usage.output'), 0) AS output,
            coalesce(json_extract(e.body, '$.usage.cached'), 0) AS cached
        FROM events e JOIN sessions s ON s.no = e.session
        WHERE e.type = 'RunFinished' AND s.deleted = 0 AND json_valid(e.body)) AS f
    WHERE runs.tenant = f.tenant AND runs.session = f.session AND runs.run = f.run;
UPDATE runs SET parent_session = o.session, parent_run = o.run, parent_call = o.call, parent_depth = o.depth
    FROM (SELECT s.tenant, s.id, json_extract(e.body, '$.parent.session') AS session, json_extract(e.body, '$.parent.run') AS run,
            json_extract(e.body, '$.parent.call') AS call, json_extract(e.body, '$.parent.depth') AS depth
        FROM sessions s JOIN events e ON e.session = s.no AND e.seq = 1
        WHERE s.root <> s.id AND e.type = 'SessionOpened' AND json_valid(e.body)) AS o
    WHERE runs.tenant = o.tenant AND runs.session = o.id AND o.session IS NOT NULL;
INSERT INTO cards (tenant, session, seq, kind, run, call, owner, asked_at)
    SELECT e.tenant, s.id, CASE e.type WHEN 'ToolCallFinished' THEN json_extract(e.body, '$.call') ELSE e.seq END,
        CASE e.type WHEN 'ApprovalRequested' THEN 'approval' WHEN 'QuestionAsked' THEN 'question' ELSE 'call' END,
        e.run, json_extract(e.body, '$.call'), s.owner, e.at
    FROM sessions s JOIN events e ON e.session = s.no AND e.seq > s.run AND e.run = s.run
    WHERE s.run <> 0 AND s.deleted = 0 AND CASE WHEN NOT json_valid(e.body) THEN 0
            WHEN e.type = 'ToolCallFinished' THEN json_extract(e.body, '$.outcome') = 'unknown'
            ELSE e.type IN ('ApprovalRequested', 'QuestionAsked') END
        AND NOT EXISTS (SELECT 1 FROM events d WHERE d.session = e.session AND d.seq > e.seq AND CASE WHEN NOT json_valid(d.body) THEN 0
            WHEN d.type = 'ToolCallResolved' THEN e.type = 'ToolCallFinished' AND json_extract(d.body, '$.call') = json_extract(e.body, '$.call')
            WHEN d.type IN ('ApprovalDecided', 'QuestionAnswered') THEN json_extract(d.body, '$.card') = e.seq ELSE 0 END);
