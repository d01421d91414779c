-- Who changed what and why, messages granted on top of a plan, and the trials of users who were forgotten.

-- A row for each reset, grant, change of plan or state, forgotten user, and change by hand. Counting writes none.
create table headroom.audit_log (
    id bigint generated always as identity,
    at headroom.instant not null,
    user_id uuid,
    bucket smallint not null default 0,
    billing_period text,
    action text not null,
    before jsonb,
    after jsonb,
    reason text,
    event_id text,
    actor text not null,
    constraint action_is_known check (action in (
        'reset', 'reset_period', 'grant', 'plan', 'store_event', 'forget', 'insert', 'update', 'delete'
    )),
    primary key (bucket, id)
);
comment on table headroom.audit_log is 'Every change but messages: who, when, what was before and after, and why.';
comment on column headroom.audit_log.user_id is
    'Null for a change that concerns no single user, and for one who was forgotten.';
comment on column headroom.audit_log.action is
    'insert, update and delete are changes by hand; the others are those of the functions.';
comment on column headroom.audit_log.actor is
    'The setting headroom.actor, else the role that was set, else the role that logged in.';
create index audit_log_user_id_id on headroom.audit_log (bucket, user_id, id);

-- Messages on top of the plan's allowance, for the period in which they were granted.
create table headroom.grants (
    user_id uuid not null,
    bucket smallint not null default 0,
    key text not null,
    billing_period text not null,
    messages integer not null,
    reason text,
    granted_at headroom.instant not null,
    actor text not null,
    constraint messages_are_1_to_1000000 check (messages between 1 and 1000000),
    primary key (bucket, user_id, key)
);
comment on column headroom.grants.key is 'The caller''s name for this grant: the same again grants nothing.';

-- Of a forgotten user's trial: that it was started and what was used of it, under a keyed hash instead of the id. A user
-- who comes back goes on in the same trial.
create table headroom.spent_trials (
    digest bytea not null,
    bucket smallint not null default 0,
    plan text not null,
    trial_started_at headroom.instant,
    trial_ends_at headroom.instant,
    messages integer not null,
    constraint messages_are_not_negative check (messages >= 0),
    primary key (bucket, digest, plan)
);
comment on column headroom.spent_trials.digest is 'HMAC-SHA256 of the user id under the secret in headroom.secrets.';

-- The key of that hash, as HMAC uses it: exclusive-or with its inner and its outer pad. Without it nobody can find out
-- by trying ids who was here. It must be restored with the rest: under another key, spent trials are not found.
create table headroom.secrets (
    name text primary key,
    inner_key bytea not null,
    outer_key bytea not null
);
with drawn as materialized (
    -- 64 bytes, the block of SHA-256. Four random uuids hold 488 random bits.
    select sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
        || sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) as secret
)
insert into headroom.secrets (name, inner_key, outer_key)
select
    'spent trials',
    string_agg(decode(lpad(to_hex(get_byte(secret, place) # 54), 2, '0'), 'hex'), '' order by place),
    string_agg(decode(lpad(to_hex(get_byte(secret, place) # 92), 2, '0'), 'hex'), '' order by place)
from drawn
cross join generate_series(0, 63) as places (place);

-- The service changes nothing that the log says; to forget a user it deletes there.
grant select, insert, delete on headroom.audit_log, headroom.grants, headroom.spent_trials to headroom_service;
grant usage on sequence headroom.audit_log_id_seq to headroom_service;
grant select on headroom.secrets to headroom_service;
grant select on headroom.audit_log, headroom.grants to headroom_operator;
