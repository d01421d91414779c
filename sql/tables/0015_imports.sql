-- Imports of users and counts from another system (headroom import).

-- One row per file. It is written in the transaction of each batch, so an import that was interrupted continues behind
-- the last row that was committed.
create table headroom.imports (
    digest bytea not null,
    adds boolean not null,
    file text not null,
    records bigint not null,
    done bigint not null default 0,
    imported bigint not null default 0,
    imported_before bigint not null default 0,
    counted bigint not null default 0,
    later bigint not null default 0,
    without_limit bigint not null default 0,
    plans_kept bigint not null default 0,
    messages bigint not null default 0,
    started_at headroom.instant not null,
    finished_at headroom.instant,
    actor text not null,
    constraint digest_is_sha256 check (pg_catalog.octet_length(digest) = 32),
    constraint done_is_0_to_records check (done between 0 and records),
    constraint numbers_are_not_negative check (
        least(records, imported, imported_before, counted, later, without_limit, plans_kept, messages) >= 0
    ),
    primary key (digest, adds)
);
comment on table headroom.imports is 'Files that headroom import has read, and how far.';
comment on column headroom.imports.digest is 'SHA-256 of the file.';
comment on column headroom.imports.adds is 'Whether counts are added to those that Headroom has counted (--add).';
comment on column headroom.imports.done is 'Rows of the file that are committed, in its order.';
comment on column headroom.imports.counted is 'Rows that were left because Headroom counts their users already.';
comment on column headroom.imports.later is 'Rows that were left because their periods have not begun for their users.';
comment on column headroom.imports.without_limit is
    'Rows whose counts were left because their users'' plans do not limit the model or the member.';
comment on column headroom.imports.plans_kept is 'Rows whose users had a plan, which they keep.';
grant select on headroom.imports to headroom_service, headroom_operator;

-- A row of the file, with the user's id, for headroom.import_batch.
create type headroom.import_row as (
    -- The position in the batch.
    ordinal integer,
    user_id uuid,
    -- Null for a row that leaves the plan as it is; so are the six that belong to it.
    plan text,
    state text,
    started_at timestamptz,
    expires_at timestamptz,
    grace_until timestamptz,
    anchor_day integer,
    -- Null is the present one.
    billing_period text,
    used integer,
    -- False leaves the limit as it is.
    has_limit boolean,
    -- Null is unlimited.
    "limit" integer,
    -- The part of the user's messages that was used: model or member, and the model or the member's id. Null is all.
    part_kind text,
    part_name text
);
