-- about: Adds the usage of each user and day and the size of each session, and fills both from the logs.
-- rows: all events sessions
-- +goose Up

-- What each user has used on each day of UTC. Rows follow from the events, and stay when those are deleted.
CREATE TABLE usage (
    tenant         TEXT COLLATE "C" NOT NULL,
    day            TEXT COLLATE "C" NOT NULL, -- as in 2026-11-30
    owner          TEXT COLLATE "C" NOT NULL, -- of the sessions
    sessions       BIGINT           NOT NULL, -- opened
    calls          BIGINT           NOT NULL, -- of models
    input_tokens   BIGINT           NOT NULL,
    output_tokens  BIGINT           NOT NULL,
    cached_tokens  BIGINT           NOT NULL,
    written_tokens BIGINT           NOT NULL,
    cost_micros    BIGINT           NOT NULL, -- millionths of a US dollar
    PRIMARY KEY (tenant, day, owner)
) WITH (fillfactor = 50);

-- The most that something under way may use, until what it uses is in usage. One of a node that lives no more is void.
CREATE TABLE holds (
    tenant   TEXT COLLATE "C" NOT NULL,
    id       TEXT COLLATE "C" NOT NULL,
    node     TEXT COLLATE "C" NOT NULL,
    owner    TEXT COLLATE "C" NOT NULL,
    sessions BIGINT           NOT NULL,
    tokens   BIGINT           NOT NULL,
    micros   BIGINT           NOT NULL,
    PRIMARY KEY (tenant, id)
) WITH (fillfactor = 50);

-- The size of the session's log.
ALTER TABLE sessions ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;

-- What the events of earlier releases imply. A body that cannot be read counts as nothing.
-- +goose StatementBegin
CREATE FUNCTION parley_number(body TEXT, VARIADIC path TEXT[]) RETURNS BIGINT LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN coalesce((body::json #>> path)::bigint, 0);
EXCEPTION WHEN OTHERS THEN
    RETURN 0;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION parley_child(body TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN body::json -> 'parent' IS NOT NULL;
EXCEPTION WHEN OTHERS THEN
    RETURN true;
END
$$;
-- +goose StatementEnd

ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE events NO FORCE ROW LEVEL SECURITY;

UPDATE sessions SET bytes = e.bytes
    FROM (SELECT tenant, session, sum(octet_length(body)) AS bytes FROM events GROUP BY tenant, session) AS e
    WHERE e.tenant = sessions.tenant AND e.session = sessions.id;
INSERT INTO usage (tenant, day, owner, sessions, calls, input_tokens, output_tokens, cached_tokens, written_tokens, cost_micros)
    SELECT tenant, day, owner, sum(sessions), count(*) FILTER (WHERE input + output + cached + written + cost > 0),
        sum(input), sum(output), sum(cached), sum(written), sum(cost)
    FROM (SELECT e.tenant, to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, s.owner,
            CASE e.type WHEN 'SessionOpened' THEN 1 ELSE 0 END AS sessions,
            parley_number(e.body, 'usage', 'input') AS input, parley_number(e.body, 'usage', 'output') AS output,
            parley_number(e.body, 'usage', 'cached') AS cached, parley_number(e.body, 'usage', 'written') AS written,
            parley_number(e.body, 'usage', 'cost_micros') AS cost
        FROM events e JOIN sessions s ON s.tenant = e.tenant AND s.id = e.session
        WHERE e.type IN ('TurnFinished', 'ApprovalExplained', 'FollowUpEvaluated', 'ContextCompacted', 'SessionRenamed')
            OR e.type = 'SessionOpened' AND s.id <> '00000000-0000-4000-8000-000000000000' AND NOT parley_child(e.body)) AS u
    WHERE sessions + input + output + cached + written + cost > 0
    GROUP BY tenant, day, owner;

DROP FUNCTION parley_number;
DROP FUNCTION parley_child;
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
ALTER TABLE events FORCE ROW LEVEL SECURITY;

-- +goose StatementBegin
DO $$
DECLARE
    name TEXT;
    here TEXT := $here$tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2)$here$;
BEGIN
    FOREACH name IN ARRAY ARRAY['usage', 'holds']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I USING (%s) WITH CHECK (%s)', name, here, here);
    END LOOP;
END
$$;
-- +goose StatementEnd
