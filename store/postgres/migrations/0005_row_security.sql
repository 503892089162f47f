-- about: Adds row-level security, and deletes due work of sessions that are gone.
-- rows: some due
-- +goose Up

-- The second wall between tenants; the first are the statements themselves. See
-- docs/adr/0012. A transaction says whose rows it is about, and sees and writes
-- no others; one that does not say sees nothing. The setting begins with =, since
-- PostgreSQL leaves an empty one behind, and the server's own chain has an empty
-- name.
--
-- It binds the owner too. A later migration that changes rows has to lift it for
-- its own transaction: ALTER TABLE … NO FORCE ROW LEVEL SECURITY.

-- Whoever looks for work cannot see whether the session is there, so it must be.
DELETE FROM due WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.tenant = due.tenant AND s.id = due.session);
ALTER TABLE due ADD FOREIGN KEY (tenant, session) REFERENCES sessions (tenant, id) ON DELETE CASCADE;

-- +goose StatementBegin
DO $$
DECLARE
    name TEXT;
    here TEXT := $here$tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2)$here$;
BEGIN
    FOREACH name IN ARRAY ARRAY['tenants', 'sessions', 'events', 'receipts', 'due', 'snapshots', 'definitions', 'effects', 'holes', 'audit',
        'tickets', 'revocations']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I USING (%s) WITH CHECK (%s)', name, here, here);
    END LOOP;
END
$$;
-- +goose StatementEnd

-- What has to be found before its tenant is known. Nothing of what was said.
CREATE POLICY maintenance ON tenants FOR SELECT USING (current_setting('parley.scope', true) = 'maintenance');
CREATE POLICY maintenance ON due FOR SELECT USING (current_setting('parley.scope', true) = 'maintenance');
CREATE POLICY maintenance ON revocations FOR SELECT USING (current_setting('parley.scope', true) = 'maintenance');
CREATE POLICY maintenance ON tickets FOR SELECT USING (current_setting('parley.scope', true) = 'maintenance');
CREATE POLICY maintenance_take ON tickets FOR DELETE USING (current_setting('parley.scope', true) = 'maintenance');
