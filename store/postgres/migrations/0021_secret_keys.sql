-- about: Notes which master keys stored secrets are encrypted with.
-- rows: none
-- +goose Up

-- The ids of the master keys that values may be encrypted with. A key is noted before its first value, and forgotten
-- when everything is encrypted with another one.
CREATE TABLE secret_keys (
    id    TEXT    NOT NULL PRIMARY KEY,
    whole BOOLEAN NOT NULL -- every secret is encrypted with this key
);
