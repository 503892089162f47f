-- about: Lets a revocation leave out the tokens of org_admins.
-- rows: none
-- +goose Up

-- Up to when tokens of a principal without the role org_admin are no longer good:
-- a person who is no org_admin has revoked them. 0: never.
ALTER TABLE revocations ADD COLUMN sparing_admins INTEGER NOT NULL DEFAULT 0;
