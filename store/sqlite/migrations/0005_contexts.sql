-- about: Adds what users want agents to know.
-- rows: none
-- +goose Up

-- What a user wants an agent to know in every session of theirs.
CREATE TABLE contexts (
    tenant    TEXT    NOT NULL,
    agent     TEXT    NOT NULL,
    principal TEXT    NOT NULL,
    body      TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent, principal)
) WITHOUT ROWID;
