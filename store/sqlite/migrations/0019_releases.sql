-- about: Notes which release of Parley applied each migration.
-- rows: none
-- +goose Up

-- The release that applied each migration, from this one on. An older release that is started on this database reads the
-- newest row to say which release is needed, so these columns stay as they are.
CREATE TABLE releases (
    version INTEGER NOT NULL PRIMARY KEY, -- of the migration
    release TEXT    NOT NULL
);
