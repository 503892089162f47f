-- about: Adds the full-text index; the server fills it in the background after its start.
-- rows: all tenants
-- +goose Up

-- The words of what was said, by the event that holds the text: see docs/adr/0098. The server splits texts into words,
-- so no text search configuration is involved.
--
-- There is no index on the words: row-level security does not let one be used by who is bound by it, because the
-- operator @@ is not leakproof. A search reads the rows of an owner or a tenant, newest first.
CREATE TABLE said (
    tenant   TEXT COLLATE "C" NOT NULL,
    session  TEXT COLLATE "C" NOT NULL,
    seq      BIGINT           NOT NULL,
    position BIGINT           NOT NULL,
    owner    TEXT COLLATE "C" NOT NULL, -- of the session
    words    TSVECTOR         NOT NULL,
    PRIMARY KEY (tenant, session, seq)
);
CREATE INDEX said_recent ON said (tenant, position);
CREATE INDEX said_owned ON said (tenant, owner, position);
ALTER TABLE said ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON said
    USING (tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2))
    WITH CHECK (tenant = substr(nullif(current_setting('parley.tenant', true), ''), 2));

-- Up to which position of a tenant nothing was indexed yet. The server indexes those in the background.
ALTER TABLE tenants ADD COLUMN unsearched BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tenants NO FORCE ROW LEVEL SECURITY;
UPDATE tenants SET unsearched = position;
ALTER TABLE tenants FORCE ROW LEVEL SECURITY;
