-- about: Notes which erasures of users have begun and not ended.
-- rows: none
-- +goose Up

-- A row says that an erasure was begun, until everything of it is done: see docs/keeping.md.
CREATE TABLE erasures (
    tenant    TEXT    NOT NULL,
    principal TEXT    NOT NULL, -- who is erased
    by        TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    artifacts TEXT    NOT NULL, -- JSON: names of files that have to go
    PRIMARY KEY (tenant, principal)
) WITHOUT ROWID;
