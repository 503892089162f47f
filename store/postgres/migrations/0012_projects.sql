-- about: Notes the project of each session.
-- rows: none
-- +goose Up

-- The root of the project that a session belongs to; empty: the tenant's first.
ALTER TABLE sessions ADD COLUMN project TEXT COLLATE "C" NOT NULL DEFAULT '';
