-- about: Adds the places of deleted chunks.
-- rows: none
-- +goose Up

-- Pieces that were deleted because an OutputFinished repeats them. Any other seq
-- that is missing was lost.
CREATE TABLE holes (
    tenant  TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    first   BIGINT           NOT NULL,
    last    BIGINT           NOT NULL,
    PRIMARY KEY (tenant, session, first)
);
-- Up to which position a tenant's log was searched for such pieces.
ALTER TABLE tenants ADD COLUMN trimmed BIGINT NOT NULL DEFAULT 0;
