-- The audit log, granted messages, and what forgotten users have spent.

-- One row per reset, grant, change of plan or state, forgotten user, and manual change. Counting writes none.
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
        'reset', 'reset_period', 'grant', 'plan', 'store_event', 'forget', 'insert', 'update', 'delete', 'import'
    )),
    primary key (bucket, id)
);
comment on table headroom.audit_log is
    'Changes other than counted messages, each with its time, actor, reason, and the values before and after.';
comment on column headroom.audit_log.user_id is
    'Null for a change of more than one user, and for a forgotten user.';
comment on column headroom.audit_log.action is
    'insert, update and delete are manual changes; functions make the others.';
comment on column headroom.audit_log.actor is
    'The setting headroom.actor, else the role that was set, else the role that logged in.';
create index audit_log_user_id_id on headroom.audit_log (bucket, user_id, id);

-- Messages beyond the plan's allowance, for the period in which they were granted.
create table headroom.grants (
    user_id uuid not null,
    bucket smallint not null default 0,
    key text not null,
    billing_period text,
    messages integer not null,
    reason text,
    granted_at headroom.instant not null,
    actor text not null,
    taken integer not null default 0,
    expires_at timestamptz,
    constraint messages_are_1_to_1000000 check (messages between 1 and 1000000),
    constraint taken_is_0_to_messages check (taken between 0 and messages),
    constraint expires_at_is_an_instant_or_infinity check (
        expires_at = 'infinity' or expires_at >= '2000-01-01T00:00:00Z' and expires_at < '10000-01-01T00:00:00Z'
    ),
    constraint a_grant_is_of_a_period_or_a_balance check ((billing_period is null) = (expires_at is not null)),
    primary key (bucket, user_id, key)
);
comment on table headroom.grants is
    'Messages granted beyond a plan''s allowance: for one billing period, or as a balance until expires_at.';
comment on column headroom.grants.key is 'The caller''s key: a repeated key grants nothing.';
comment on column headroom.grants.expires_at is
    'When a balance ends; infinity is never. Null for a grant that raised the limit of billing_period.';
comment on column headroom.grants.taken is
    'Messages of a balance that were counted or are held, without those that message_usage.extra includes.';

-- What a forgotten user has spent and never gets again, under a keyed hash instead of the id. A user that returns
-- continues the same trial, and keeps what it used of plans that never reset.
create table headroom.spent_trials (
    digest bytea not null,
    bucket smallint not null default 0,
    plan text not null,
    trial_started_at headroom.instant,
    trial_ends_at headroom.instant,
    messages integer not null,
    constraint bucket_is_0 check (bucket = 0),
    constraint messages_are_not_negative check (messages >= 0),
    primary key (bucket, digest, plan)
);
comment on table headroom.spent_trials is
    'What forgotten users have spent and never get again: trials, and messages of plans that never reset.';
comment on column headroom.spent_trials.digest is 'HMAC-SHA256 of the user id under the secret in headroom.secrets.';
comment on column headroom.spent_trials.messages is 'Messages counted in the only period of the plan.';

-- The keys of that hash in the form that HMAC uses: its secret combined with the inner and the outer padding by
-- exclusive or. Without it, user ids cannot be tested against the digests. A backup must include it: with another key,
-- spent trials are not found.
create table headroom.secrets (
    name text primary key,
    inner_key bytea not null,
    outer_key bytea not null
);
with random_bytes as materialized (
    -- 64 bytes, the block size of SHA-256. Four random UUIDs contain 488 random bits.
    select sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
        || sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) as secret
)
insert into headroom.secrets (name, inner_key, outer_key)
select
    'spent trials' as name,
    string_agg(set_byte('\x00', 0, int4xor(get_byte(secret, position), 54)), '' order by position) as inner_key,
    string_agg(set_byte('\x00', 0, int4xor(get_byte(secret, position), 92)), '' order by position) as outer_key
from random_bytes
cross join generate_series(0, 63) as positions (position);

-- Only functions of headroom_owner delete rows: to forget a user, to revoke a purchase and to restore a trial.
grant select, insert on headroom.audit_log, headroom.grants to headroom_service;
grant select on headroom.spent_trials to headroom_service;
-- A period that began while the clock was ahead gets another label, and messages are taken from balances.
grant update (billing_period, taken) on headroom.grants to headroom_service;
grant usage on sequence headroom.audit_log_id_seq to headroom_service;
grant select on headroom.secrets to headroom_service;
grant select on headroom.audit_log, headroom.grants to headroom_operator;
