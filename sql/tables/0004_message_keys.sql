-- Idempotency keys of requests, and receipts of batches. Both prevent counting a message twice.

-- One row for each idempotency key that a caller sent with CONSUME or RESERVE. The transaction that counts or holds the
-- messages inserts it, with the numbers of the answer, so that a repeated request gets the same answer.
create table headroom.message_keys (
    user_id uuid not null,
    created_at headroom.instant not null,
    -- The generation of the usage row when it counted the messages. A reset changes the row's generation, so a later
    -- release of the key subtracts nothing.
    generation bigint not null,
    messages integer not null,
    used integer not null,
    held integer not null,
    "limit" integer,
    -- The messages that COMMIT has counted, and the numbers of its answer; used, held and "limit" above are those of
    -- the first answer.
    committed_messages integer,
    committed_used integer,
    committed_held integer,
    committed_limit integer,
    expires_at timestamptz,
    bucket smallint not null default 0,
    verb "char" not null,
    status "char" not null,
    billing_period text not null,
    key text not null,
    -- The window in which the messages were counted or held, and its numbers as above. Null without one.
    window_opened_at headroom.instant,
    window_used integer,
    window_held integer,
    window_limit integer,
    committed_window_used integer,
    committed_window_held integer,
    committed_window_limit integer,
    -- The model and the member of the messages, and what they take of their limits: Engine's KeyParts. Null without.
    parts jsonb,
    -- Ranges are checked by the trigger values_are_in_range, because PostgreSQL would parse constraints in each batch.
    primary key (bucket, user_id, key)
) with (
    -- The space that is left is for keys that are committed or released.
    fillfactor = 90,
    -- Keys are inserted and deleted at the rate of messages. Frequent vacuums free the space for new keys.
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2
);
comment on column headroom.message_keys.messages is
    'The messages of the user''s allowance that were counted or held: those of the request times the model''s weight.';
comment on column headroom.message_keys.expires_at is
    'Null for CONSUME. -infinity: the hold ended early, because its usage row was deleted.';
comment on column headroom.message_keys.verb is 'c: CONSUME, r: RESERVE';
comment on column headroom.message_keys.status is
    'c: counted, h: held until expires_at, r: released; an expired hold keeps h';

-- Finds a user's holds without reading all of the user's keys. Neither column changes when a hold is committed or
-- released: an index on status would make PostgreSQL insert the row into all indexes again.
create index message_keys_held on headroom.message_keys (bucket, user_id, expires_at) where expires_at is not null;
-- Rows are inserted in the order of created_at, so a block range index finds old ones at almost no cost.
create index message_keys_created_at on headroom.message_keys using brin (created_at) with (pages_per_range = 32);

-- This finds a member in every account, to forget it.
create index message_keys_member on headroom.message_keys ((parts #>> '{member,name}')) where parts ? 'member';

-- One row per database connection ("lane") of a service process. Each batch increments its lane's number in the
-- transaction that counts, and stores its answers here. After a lost connection the lane sends the same number again:
-- it either increments the number now, or reads the answers of the lost transaction
-- (docs/contributors/architecture.md).
create table headroom.lane_receipts (
    lane uuid not null,
    bucket smallint not null default 0,
    number bigint not null,
    counts bigint[],
    answers text,
    -- Constraints would be parsed in each batch. Only functions write this table.
    updated_at timestamptz not null,
    primary key (bucket, lane)
) with (
    fillfactor = 50, toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000
);
alter table headroom.lane_receipts alter column counts set storage main;
comment on column headroom.lane_receipts.number is 'The number of the newest committed batch or change of the lane.';
comment on column headroom.lane_receipts.counts is
    'Answers of a batch on the fast path: for each counted user, ordinal of the period * 2^48 + ordinal of the user '
    'in the batch * 2^32 + message_count.';
comment on column headroom.lane_receipts.answers is
    'Answers of a batch on the slow path, as the service writes them; or "replayed" of a repeated grant.';

grant select, insert, update, delete on headroom.message_keys, headroom.lane_receipts to headroom_service;
grant select on headroom.message_keys, headroom.lane_receipts to headroom_operator;
