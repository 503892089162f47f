-- about: Adds the usage of each user and day and the size of each session, and fills both from the logs.
-- rows: all events sessions
-- +goose Up

-- What each user has used on each day of UTC. Rows follow from the events, and stay when those are deleted.
CREATE TABLE usage (
    tenant         TEXT    NOT NULL,
    day            TEXT    NOT NULL, -- as in 2026-11-30
    owner          TEXT    NOT NULL, -- of the sessions
    sessions       INTEGER NOT NULL, -- opened
    calls          INTEGER NOT NULL, -- of models
    input_tokens   INTEGER NOT NULL,
    output_tokens  INTEGER NOT NULL,
    cached_tokens  INTEGER NOT NULL,
    written_tokens INTEGER NOT NULL,
    cost_micros    INTEGER NOT NULL, -- millionths of a US dollar
    PRIMARY KEY (tenant, day, owner)
) WITHOUT ROWID;

-- The size of the session's log.
ALTER TABLE sessions ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;

-- What the events of earlier releases imply. A body that cannot be read counts as nothing.
UPDATE sessions SET bytes = e.bytes
    FROM (SELECT session, sum(length(CAST(body AS BLOB))) AS bytes FROM events GROUP BY session) AS e
    WHERE e.session = sessions.no;
INSERT INTO usage (tenant, day, owner, sessions, calls, input_tokens, output_tokens, cached_tokens, written_tokens, cost_micros)
    SELECT tenant, day, owner, sum(sessions), sum(input + output + cached + written + cost > 0), sum(input), sum(output), sum(cached), sum(written), sum(cost)
    FROM (SELECT e.tenant AS tenant, strftime('%Y-%m-%d', e.at / 1000000, 'unixepoch') AS day, s.owner AS owner,
            e.type = 'SessionOpened' AS sessions,
            coalesce(json_extract(e.body, '$.usage.input'), 0) AS input, coalesce(json_extract(e.body, '$.usage.output'), 0) AS output,
            coalesce(json_extract(e.body, '$.usage.cached'), 0) AS cached, coalesce(json_extract(e.body, '$.usage.written'), 0) AS written,
            coalesce(json_extract(e.body, '$.usage.cost_micros'), 0) AS cost
        FROM events e JOIN sessions s ON s.no = e.session
        WHERE json_valid(e.body) AND (e.type IN ('TurnFinished', 'ApprovalExplained', 'FollowUpEvaluated', 'ContextCompacted', 'SessionRenamed')
            OR e.type = 'SessionOpened' AND s.id <> '00000000-0000-4000-8000-000000000000' AND json_extract(e.body, '$.parent') IS NULL))
    WHERE sessions + input + output + cached + written + cost > 0
    GROUP BY tenant, day, owner;
