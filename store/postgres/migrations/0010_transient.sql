-- about: Gives sessions of single connections a date on which they delete themselves.
-- rows: some sessions
-- +goose Up

-- Sessions of connections delete themselves after seven days in which nothing
-- happens. Those from before that was so are due as the others are; whether they
-- go is decided by their logs.
ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE due NO FORCE ROW LEVEL SECURITY;
INSERT INTO due (tenant, session, at, reason, lease)
SELECT tenant, id, updated_at + interval '7 days', 'transient', '' FROM sessions
WHERE transient AND NOT deleted AND root = id AND run = 0
ON CONFLICT DO NOTHING;
ALTER TABLE due FORCE ROW LEVEL SECURITY;
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
