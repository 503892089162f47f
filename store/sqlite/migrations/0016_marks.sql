-- about: Adds pinned and archived sessions.
-- rows: none
-- +goose Up

-- What a user has noted about a session, for lists of their own.
CREATE TABLE marks (
    tenant    TEXT    NOT NULL,
    session   TEXT    NOT NULL,
    principal TEXT    NOT NULL,
    pinned    INTEGER NOT NULL,
    archived  INTEGER NOT NULL,
    read_at   INTEGER NOT NULL, -- when the user last looked at it; 0: never
    PRIMARY KEY (tenant, session, principal)
) WITHOUT ROWID;
