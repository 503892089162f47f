-- about: Adds the full-text index; the server fills it in the background after its start.
-- rows: some store
-- +goose Up

-- The words of what was said, by the number of the event that holds the text: see docs/adr/0098. whose has a word for
-- the tenant and one for the owner of the session. The server splits texts into words; SQLite takes what lies between
-- two spaces for one.
CREATE VIRTUAL TABLE said USING fts5(whose, words, content = '', contentless_delete = 1, tokenize = 'ascii');

-- Up to which event nothing was indexed yet. The server indexes those in the background.
ALTER TABLE store ADD COLUMN unsearched INTEGER NOT NULL DEFAULT 0;
UPDATE store SET unsearched = (SELECT coalesce(max(no), 0) FROM events);
