-- Who changed what and why, messages granted on top of a plan, and users who are forgotten.

-- Audit ---------------------------------------------------------------------------------------------------------------

-- A row for each reset, grant, change of plan or state, forgotten user, and change by hand. Counting writes none.
create table headroom.audit_log (
    id bigint generated always as identity primary key,
    at timestamptz not null default headroom.now(),
    user_id uuid,
    billing_period text,
    action text not null,
    before jsonb,
    after jsonb,
    reason text,
    event_id text,
    actor text not null,
    constraint action_is_known check (action in (
        'reset', 'reset_period', 'grant', 'plan', 'store_event', 'forget', 'insert', 'update', 'delete'
    ))
);
comment on table headroom.audit_log is 'Every change but messages: who, when, what was before and after, and why.';
comment on column headroom.audit_log.user_id is
    'Null for a change that concerns no single user, and for one who was forgotten.';
comment on column headroom.audit_log.action is
    'insert, update and delete are changes by hand; the others are those of the functions.';
comment on column headroom.audit_log.actor is
    'The setting headroom.actor, else the role that was set, else the role that logged in.';
create index audit_log_user_id_id on headroom.audit_log (user_id, id);

-- Who is at it. Neither current_user, which is the owner inside a SECURITY DEFINER function, nor only the role that
-- logged in, which all clients of a pooler share. A dashboard with accounts of its own names its person by
-- set headroom.actor.
create function headroom.actor() returns text
    language sql stable
    return coalesce(
        nullif(pg_catalog.current_setting('headroom.actor', true), ''),
        nullif(pg_catalog.current_setting('role', true), 'none'),
        session_user::text
    );

-- Writes one row of the audit log. Telling again what is so already is no change of plan or state, and leaves none.
-- Where a function takes no reason, and for a change by hand, set headroom.reason = '…' gives one.
create function headroom.record_change(
    p_user_id uuid,
    p_billing_period text,
    p_action text,
    p_before jsonb,
    p_after jsonb,
    p_reason text default null,
    p_event_id text default null
) returns void
    language plpgsql set search_path = pg_catalog
as $$
begin
    if p_action in ('plan', 'store_event') and p_before is not distinct from p_after then
        return;
    end if;
    insert into headroom.audit_log (at, user_id, billing_period, action, before, after, reason, event_id, actor)
    values (
        headroom.now(), p_user_id, p_billing_period, p_action, p_before, p_after,
        coalesce(p_reason, nullif(current_setting('headroom.reason', true), '')), p_event_id, headroom.actor()
    );
end
$$;

-- An instant as the protocol writes it, whatever the session's time zone.
create function headroom.instant_text(p_at timestamptz) returns text
    language sql stable parallel safe
    return pg_catalog.to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');

-- What the audit log keeps of a usage row.
create function headroom.usage_record(p_row public.message_usage) returns jsonb
    language sql stable
    return case when (p_row).user_id is not null then pg_catalog.jsonb_build_object(
        'period', (p_row).billing_period, 'count', (p_row).message_count, 'limit', (p_row)."limit"
    ) end;

-- What it keeps of a subscription: what follows from its inputs, and the anchor day. Null where there is none.
create function headroom.plan_record(p_terms headroom.terms, p_subscriber headroom.subscribers) returns jsonb
    language sql stable
    return case when (p_terms).is_known then pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
        'plan', (p_terms).plan,
        'state', (p_terms).state,
        'started', case when (p_terms).cycle <> 'monthly' then headroom.instant_text((p_terms).started_at) end,
        'expires', headroom.instant_text((p_terms).expires_at),
        'anchor', (p_subscriber).anchor_day,
        'previous_plan', (p_subscriber).previous_plan
    )) end;

-- Records a change that somebody made by hand, with the columns that changed and those that name the row. The triggers
-- on message_usage, subscribers and subscriptions spare the service and its functions by their WHEN, and stand where
-- roles do.
create function headroom.record_change_by_hand() returns trigger
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_before jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
    v_after jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
    v_named constant text[] := case tg_table_name
        when 'message_usage' then array['billing_period', 'message_count', 'limit']
        when 'subscriptions' then array['original_transaction_id', 'plan']
        when 'plans' then array['plan']
        else '{}'
    end;
    v_user_before constant text := v_before ->> 'user_id';
    v_user_after constant text := v_after ->> 'user_id';
    v_kept_before jsonb;
    v_kept_after jsonb;
begin
    -- What follows from a change that is recorded already: a new generation after a reset, a plan's new name. A deleted
    -- subscriber's subscriptions are told, because nothing else tells what they were.
    if pg_trigger_depth() > 1 and not (tg_op = 'DELETE' and tg_table_name = 'subscriptions') then
        return null;
    end if;
    select
        jsonb_object_agg(name, v_before -> column_name) filter (where v_before is not null),
        jsonb_object_agg(name, v_after -> column_name) filter (where v_after is not null)
    into v_kept_before, v_kept_after
    from jsonb_object_keys(coalesce(v_after, v_before)) as columns (column_name)
    cross join lateral (
        select case column_name
            when 'billing_period' then 'period'
            when 'message_count' then 'count'
            else column_name
        end as name
    ) as names
    where column_name <> 'user_id'
        and (
            column_name = any (v_named)
            or tg_table_name <> 'message_usage' and tg_op <> 'UPDATE'
            or tg_op = 'UPDATE' and v_before -> column_name is distinct from v_after -> column_name
        );
    if v_user_before <> v_user_after then
        -- Moved to another user: it is told in both stories, and neither names the other.
        perform headroom.record_change(
            v_user_before::uuid, v_before ->> 'billing_period', 'delete', v_kept_before, null
        );
        v_kept_before := null;
    end if;
    perform headroom.record_change(
        coalesce(v_user_after, v_user_before)::uuid, coalesce(v_after, v_before) ->> 'billing_period',
        case when v_user_before <> v_user_after then 'insert' else lower(tg_op) end, v_kept_before, v_kept_after
    );
    return null;
end
$$;
-- Nothing but hands writes plans.
create trigger record_change_by_hand after insert or update or delete on headroom.plans
    for each row execute function headroom.record_change_by_hand();

-- A change in words: "count 412 → 0, limit 800, period 2026-11".
create function headroom.change_text(p_before jsonb, p_after jsonb) returns text
    language sql stable
begin atomic
    select string_agg(
        name || ' ' || case
            when before is null then after
            when after is null then case when p_after is null then before else before || ' → none' end
            when before = after then after
            else before || ' → ' || after
        end,
        ', ' order by name
    )
    from (
        select
            coalesce(old.key, new.key) as name,
            case when old.key is not null then coalesce(old.value, nothing.word) end as before,
            case when new.key is not null then coalesce(new.value, nothing.word) end as after
        from jsonb_each_text(p_before) as old
        full join jsonb_each_text(p_after) as new on new.key = old.key
        cross join lateral (
            select case coalesce(old.key, new.key) when 'limit' then 'unlimited' else 'none' end as word
        ) as nothing
    ) as changes;
end;

create view public.user_story as
select
    audit.user_id, audit.at, audit.action as what, headroom.change_text(audit.before, audit.after) as detail,
    audit.actor, audit.reason, audit.event_id, audit.id
from headroom.audit_log as audit
where audit.user_id is not null;
comment on view public.user_story is
    'What was changed for a user, by whom and why: select * from user_story where user_id = … order by id.';

-- Dashboards ----------------------------------------------------------------------------------------------------------

-- As before, but for what remains of no limit: null, like the limit; greatest() of a null would be 0.
create or replace view public.monthly_usage as
select
    usage.user_id,
    usage.billing_period,
    usage.plan,
    usage.state,
    usage.message_count as used,
    holds.held,
    usage."limit",
    case
        when usage."limit" is not null
            then greatest(usage."limit"::bigint - usage.message_count - holds.held, 0)::integer
    end as remaining,
    headroom.tier_of(
        usage.message_count::bigint + holds.held, usage."limit", plans.gentle_percent, plans.prominent_percent
    ) as tier,
    usage.resets_at,
    usage.expires_at,
    usage.updated_at
from public.message_usage as usage
cross join lateral (select headroom.held_now(usage) as held) as holds
left join headroom.plans as plans on plans.plan = usage.plan;

create view public.billing_period_report as
select
    monthly_usage.billing_period,
    count(*) as users,
    sum(monthly_usage.used)::bigint as messages,
    count(*) filter (where monthly_usage.tier = 'silent') as silent,
    count(*) filter (where monthly_usage.tier = 'gentle') as gentle,
    count(*) filter (where monthly_usage.tier = 'prominent') as prominent,
    count(*) filter (where monthly_usage.tier = 'blocked') as blocked
from public.monthly_usage
group by monthly_usage.billing_period;
comment on view public.billing_period_report is
    'A row per billing period: users with usage in it, their messages, and how many are in which tier by their usage.';

-- Grants --------------------------------------------------------------------------------------------------------------

-- Messages on top of the plan's allowance, for the period in which they were granted.
create table headroom.grants (
    user_id uuid not null,
    key text not null,
    billing_period text not null,
    messages integer not null,
    reason text,
    granted_at timestamptz not null default headroom.now(),
    actor text not null,
    constraint messages_are_1_to_1000000 check (messages between 1 and 1000000),
    primary key (user_id, key)
);
comment on column headroom.grants.key is 'The caller''s name for this grant: the same again grants nothing.';

-- Null is none, also in rows that are there already: a default would make each new row wider for the sake of few.
alter table public.message_usage add column granted integer;
comment on column public.message_usage.granted is
    'Messages granted in this period beyond the plan''s allowance; "limit" has them in it. Null is none.';

-- The limit in force: what the row says (an operator's UPDATE, say) while the plan's own allowance is what it was when
-- the row took it, else the plan's allowance and what was granted in this period.
create or replace function headroom.limit_in_force(p_row public.message_usage, p_allowance integer) returns integer
    language sql immutable parallel safe
    return case
        when (p_row).plan is not null and (p_row).plan_limit is not distinct from p_allowance then (p_row)."limit"
        when p_allowance is null then null
        else least(p_allowance::bigint + coalesce((p_row).granted, 0), 2147483647)::integer
    end;

-- Forgotten users -----------------------------------------------------------------------------------------------------

alter table headroom.subscribers
    add column declared_at timestamptz,
    add column trial_ends_at timestamptz;
comment on column headroom.subscribers.declared_at is
    'When set_plan last said all about this user: what a store tells of earlier is out of date.';
comment on column headroom.subscribers.trial_ends_at is
    'Of a forgotten user who came back: when the trial ends, where that is not its start and the plan''s days.';

-- Of a forgotten user's trial: that it was started and what was used of it, under a keyed hash instead of the id.
-- Whoever comes back goes on in the same trial.
create table headroom.spent_trials (
    digest bytea not null,
    plan text not null,
    trial_started_at timestamptz,
    trial_ends_at timestamptz,
    messages integer not null,
    constraint messages_are_not_negative check (messages >= 0),
    primary key (digest, plan)
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

-- The key is an argument because a function that reads no table is inlined, which each new user's first message would
-- notice otherwise.
create function headroom.digest_of(p_user_id uuid, p_secret headroom.secrets) returns bytea
    language sql immutable parallel safe
    return pg_catalog.sha256(
        (p_secret).outer_key
        || pg_catalog.sha256((p_secret).inner_key || pg_catalog.uuid_send(p_user_id))
    );

create function headroom.digest_of(p_user_id uuid) returns bytea
    language sql stable
begin atomic
    select headroom.digest_of(p_user_id, secrets) from headroom.secrets where secrets.name = 'spent trials';
end;

-- Whoever makes a row for a user who was forgotten brings the spent trial back with it: its start, and its messages in
-- the usage rows.
create function headroom.bring_trial_back() returns trigger
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_spent headroom.spent_trials;
begin
    for v_spent in
        delete from headroom.spent_trials as spent
        where spent.digest = (
            select headroom.digest_of(new.user_id, secrets) from headroom.secrets where secrets.name = 'spent trials'
        )
        returning spent.*
    loop
        update headroom.subscribers as subscriber
        set trial_started_at = least(subscriber.trial_started_at, v_spent.trial_started_at),
            trial_ends_at = least(subscriber.trial_ends_at, v_spent.trial_ends_at)
        where subscriber.user_id = new.user_id;
        insert into public.message_usage as usage (
            user_id, billing_period, message_count, "limit", updated_at, plan, plan_limit, state, started_at, expires_at
        )
        select
            new.user_id, v_spent.plan, v_spent.messages, plans.allowance, headroom.now(), v_spent.plan, plans.allowance,
            'trial', v_spent.trial_started_at,
            coalesce(v_spent.trial_ends_at, v_spent.trial_started_at + make_interval(hours => 24 * plans.trial_days))
        from (select) as always
        left join headroom.plans as plans on plans.plan = v_spent.plan
        on conflict (user_id, billing_period) do update
        set message_count = least(usage.message_count::bigint + excluded.message_count, 2147483647);
    end loop;
    return null;
end
$$;
create trigger bring_trial_back after insert on headroom.subscribers
    for each row execute function headroom.bring_trial_back();

-- For whoever writes usage without making the user known.
create function headroom.bring_back(p_user_id uuid) returns void
    language plpgsql set search_path = pg_catalog
as $$
begin
    insert into headroom.subscribers (user_id)
    select p_user_id
    where exists (select from headroom.spent_trials as spent where spent.digest = headroom.digest_of(p_user_id))
    on conflict (user_id) do nothing;
end
$$;

-- Of a user who was forgotten and did not come back yet; else null.
alter type headroom.terms add attribute spent_messages integer;

-- Derives a user's terms at p_at. p_unknown_users says what becomes of a user without a subscription: trial, free or
-- deny.
--
-- Procedural, with scalars and few statements, because each user whose row cannot be used passes here: as one query it
-- took ten times as long to plan as to run, and with the states as nested expressions twice as long as this.
create or replace function headroom.terms_of(p_user_id uuid, p_at timestamptz, p_unknown_users text) returns headroom.terms
    language plpgsql stable
as $$
declare
    v_subscriber headroom.subscribers;
    v_held record;
    v_terms headroom.terms;
    v_state text;
    v_lapse text;
    v_ends_at timestamptz;
    v_rank integer;
    v_best_rank integer;
    v_changes_at timestamptz := 'infinity';
    v_month date;
    v_anchor_day integer;
    v_trial_started_at timestamptz;
    v_trial_ends_at timestamptz;
begin
    select * into v_subscriber from headroom.subscribers where user_id = p_user_id;
    v_terms.previous_plan := v_subscriber.previous_plan;
    v_trial_started_at := v_subscriber.trial_started_at;
    v_trial_ends_at := v_subscriber.trial_ends_at;
    if v_subscriber.user_id is null and p_unknown_users = 'trial' then
        select
            min(spent.trial_started_at), min(spent.trial_ends_at),
            sum(spent.messages) filter (where spent.plan = 'trial')
        into v_trial_started_at, v_trial_ends_at, v_terms.spent_messages
        from headroom.spent_trials as spent
        where spent.digest = (
            select headroom.digest_of(p_user_id, secrets) from headroom.secrets where secrets.name = 'spent trials'
        );
    end if;

    -- A plan and the revision of plans come out of one statement, so of one snapshot: terms from before an edit of the
    -- plan never carry the revision from after it.
    for v_held in
        select
            true as is_known, plans.plan, plans.cycle, plans.allowance, plans.trial_days, revised.revision,
            subscription.started_at, subscription.expires_at, subscription.grace_until, subscription.billing_issue_at,
            subscription.unsubscribed_at, subscription.revoked_at
        from headroom.subscriptions as subscription
        join headroom.plans as plans on plans.plan = subscription.plan
        cross join headroom.plan_revision as revised
        where subscription.user_id = p_user_id
        union all
        -- Nobody told us about this user: a trial that starts now, the free plan, or nothing.
        select
            false, plans.plan, plans.cycle, plans.allowance, plans.trial_days, revised.revision,
            coalesce(v_trial_started_at, p_at), case plans.cycle when 'trial' then v_trial_ends_at end, null, null,
            null, null
        from headroom.plans as plans
        cross join headroom.plan_revision as revised
        where plans.plan = case p_unknown_users when 'trial' then 'trial' else 'free' end
            and not exists (select from headroom.subscriptions where user_id = p_user_id)
    loop
        -- Several states may hold: revoked comes first, then a billing issue, then cancelled, then active. Intervals
        -- are half-open: at expires_at itself access is over.
        v_lapse := null;
        v_ends_at := v_held.expires_at;
        if v_held.cycle = 'trial' then
            v_ends_at := coalesce(v_ends_at, v_held.started_at + make_interval(hours => 24 * v_held.trial_days));
        elsif v_held.billing_issue_at is not null then
            -- The store's date counts; 16 days after expiry where it gives none.
            v_ends_at := greatest(v_ends_at, coalesce(v_held.grace_until, v_ends_at + interval '16 days'));
        end if;
        if v_held.revoked_at <= p_at then
            v_state := 'revoked';
            v_lapse := 'revoked';
        elsif v_held.cycle = 'trial' then
            v_state := 'trial';
            if p_at >= v_ends_at then
                v_lapse := 'trial_ended';
                -- Somebody ended it; it did not run out.
                if v_held.unsubscribed_at is not null then
                    v_state := 'expired';
                    v_lapse := 'expired';
                end if;
            end if;
        elsif v_held.billing_issue_at is not null then
            if p_at < v_ends_at then
                v_state := 'grace_period';
            else
                v_state := 'billing_retry';
                v_lapse := 'billing_retry';
            end if;
        elsif v_held.expires_at <= p_at then
            v_state := 'expired';
            v_lapse := 'expired';
        elsif v_held.cycle = 'lifetime' then
            v_state := 'free';
            if not v_held.is_known and p_unknown_users = 'deny' then
                v_lapse := 'no_subscription';
            end if;
        elsif v_held.unsubscribed_at is not null then
            v_state := 'cancelled';
        else
            v_state := 'active';
        end if;
        -- Any of a user's subscriptions that changes may change which of them counts.
        if v_ends_at > p_at then
            v_changes_at := least(v_changes_at, v_ends_at);
        end if;
        if v_held.revoked_at > p_at then
            v_changes_at := least(v_changes_at, v_held.revoked_at);
        end if;

        -- Access over any of the user's subscriptions: who holds two products and loses one keeps the other. A trial
        -- counts only when there is nothing else, or a refund would bring it back.
        v_rank := case v_held.cycle when 'trial' then 200 when 'lifetime' then 10 else 0 end
            + case when v_lapse is not null then 100 else 0 end
            + case v_state
                when 'revoked' then 0 when 'billing_retry' then 1 when 'grace_period' then 1 when 'cancelled' then 2
                else 3
            end;
        if v_best_rank is null or v_rank < v_best_rank
            or (v_rank = v_best_rank
                and coalesce(v_held.allowance, 2147483647) > coalesce(v_terms.allowance, 2147483647)) then
            v_best_rank := v_rank;
            v_terms.is_known := v_held.is_known;
            v_terms.plan := v_held.plan;
            v_terms.cycle := v_held.cycle;
            v_terms.state := v_state;
            v_terms.lapse := v_lapse;
            v_terms.allowance := case v_lapse when 'no_subscription' then 0 else v_held.allowance end;
            v_terms.started_at := v_held.started_at;
            v_terms.expires_at := v_ends_at;
            v_terms.plan_revision := v_held.revision;
        end if;
    end loop;

    if v_terms.plan is null then
        raise exception 'headroom.plans has no plan named %, which users without a subscription are on',
            case p_unknown_users when 'trial' then 'trial' else 'free' end
            using hint = 'Insert it, or start the service with another --unknown-users.';
    end if;
    v_terms.usable_until := v_changes_at;
    if v_terms.cycle <> 'monthly' then
        v_terms.billing_period := v_terms.plan;
        v_terms.started_at := coalesce(v_terms.started_at, p_at);
        return v_terms;
    end if;
    v_anchor_day := coalesce(v_subscriber.anchor_day, 1);
    v_month := headroom.cycle_month(p_at, v_anchor_day);
    -- A period never goes back: when a later anchor day, or a clock set back, would name the month before one that
    -- already has a row, that row's month stays.
    if exists (
        select from public.message_usage as usage
        where usage.user_id = p_user_id
            and usage.billing_period = headroom.month_label((v_month + interval '1 month')::date)
    ) then
        v_month := (v_month + interval '1 month')::date;
    end if;
    v_terms.billing_period := headroom.month_label(v_month);
    v_terms.started_at := headroom.cycle_start(v_month, v_anchor_day);
    v_terms.resets_at := headroom.cycle_start((v_month + interval '1 month')::date, v_anchor_day);
    v_terms.usable_until := least(v_changes_at, v_terms.resets_at);
    if v_terms.lapse is not null then
        v_terms.previous_plan := v_terms.plan;
    end if;
    return v_terms;
end
$$;

-- "held" in the row is exact until usable_until, which no hold outlives; after it, holds have to be looked up.
create or replace function headroom.standing_from(
    p_terms headroom.terms, p_row public.message_usage, p_held bigint, p_at timestamptz
) returns headroom.standing
    language sql immutable parallel safe
    return row(
        (p_terms).plan, (p_terms).state, (p_terms).lapse, (p_terms).billing_period,
        least(coalesce((p_row).message_count, 0)::bigint + coalesce((p_terms).spent_messages, 0), 2147483647)::integer,
        least(coalesce(p_held, 0), 2147483647)::integer,
        headroom.limit_in_force(p_row, (p_terms).allowance),
        (p_terms).started_at, (p_terms).resets_at, (p_terms).expires_at, (p_terms).previous_plan,
        p_at, (p_terms).plan_revision, 'ok', 0, false
    )::headroom.standing;

-- A user's standing now. Reads only: nothing is created, so a trial that has not started shows as if it started now.
-- Written anew as it was: the body of a function in SQL is kept parsed, with the attributes that headroom.terms had.
create or replace function headroom.peek(p_user_id uuid, p_unknown_users text) returns headroom.standing
    language sql stable
begin atomic
    select headroom.standing_from(
        terms, usage,
        case when usage.held > 0 then (
            select holds.held from headroom.holds_of(p_user_id, terms.billing_period, headroom.now()) as holds
        ) end,
        headroom.now()
    )
    from headroom.terms_of(p_user_id, headroom.now(), p_unknown_users) as terms
    left join public.message_usage as usage
        on usage.user_id = p_user_id and usage.billing_period = terms.billing_period;
end;

-- Remembers a user who was unknown until a message was counted. False when somebody else did so in between: the caller
-- has to look again.
create or replace function headroom.introduce(p_user_id uuid, p_terms headroom.terms) returns boolean
    language plpgsql set search_path = pg_catalog
as $$
begin
    insert into headroom.subscribers (user_id, trial_started_at)
    values (p_user_id, case (p_terms).cycle when 'trial' then (p_terms).started_at end)
    on conflict (user_id) do nothing;
    if not found then
        -- Known, but without a subscription: an anchor day was kept, or a subscription was removed.
        perform from headroom.subscribers where user_id = p_user_id for no key update;
        if exists (select from headroom.subscriptions where user_id = p_user_id) then
            return false;
        end if;
        update headroom.subscribers
        set trial_started_at = coalesce(trial_started_at, case (p_terms).cycle when 'trial' then (p_terms).started_at end)
        where user_id = p_user_id;
    end if;
    insert into headroom.subscriptions (user_id, original_transaction_id, plan, started_at, expires_at)
    select
        p_user_id, 'first message', (p_terms).plan, (p_terms).started_at,
        case (p_terms).cycle when 'trial' then subscriber.trial_ends_at end
    from headroom.subscribers as subscriber
    where subscriber.user_id = p_user_id;
    return true;
end
$$;

-- Counting ------------------------------------------------------------------------------------------------------------

-- Carries out one user's requests in their order and returns what each is told. Whatever the hot statements cannot do
-- comes here: users whose row is missing, blocked, lapsed or out of date, repeated keys, and holds.
--
-- p_verbs: consume, reserve, commit, release, check, usage; p_messages, p_keys and p_ttls_s (seconds) go with them, null
-- where they do not apply. Each request is all or nothing. The row is written once, at the end, with the terms that
-- hold now, so that the next message takes the short way.
create or replace function headroom.perform(
    p_user_id uuid, p_verbs text[], p_messages integer[], p_keys text[], p_ttls_s integer[], p_unknown_users text
) returns headroom.standing[]
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_terms headroom.terms;
    v_row public.message_usage;
    v_row_exists boolean;
    v_is_read boolean := false;
    v_is_changed boolean := false;
    v_used bigint;
    v_held bigint;
    v_released integer;
    v_holds_end_at timestamptz;
    v_limit bigint;
    v_standing headroom.standing;
    v_answer headroom.standing;
    v_answers headroom.standing[];
    v_key headroom.message_keys;
    v_verb text;
    v_messages integer;
    v_expires_at timestamptz;
begin
    for i in 1 .. cardinality(p_verbs) loop
        v_verb := p_verbs[i];
        v_messages := p_messages[i];
        -- A second turn only after losing a race for a row that was not there: the winner's row is there now.
        loop
            if not v_is_read then
                -- Against set_plan, which takes the same row for update: terms read after this hold until we commit. Not
                -- for share: introduce takes the row for itself, and two sessions that share it would deadlock there.
                perform from headroom.subscribers where user_id = p_user_id for no key update;
                if not found and v_verb in ('consume', 'reserve') and p_unknown_users <> 'deny' and exists (
                    select from public.message_usage as usage where usage.user_id = p_user_id
                ) then
                    -- A row that a grant or an operator made. It is locked below, and the subscriber comes first.
                    insert into headroom.subscribers (user_id) values (p_user_id) on conflict (user_id) do nothing;
                    perform from headroom.subscribers where user_id = p_user_id for no key update;
                end if;
                v_terms := headroom.terms_of(p_user_id, v_now, p_unknown_users);
                select * into v_row from public.message_usage as usage
                where usage.user_id = p_user_id and usage.billing_period = v_terms.billing_period
                for update;
                v_row_exists := found;
                v_held := 0;
                v_holds_end_at := null;
                if v_row.held > 0 then
                    select holds.held, holds.ends_at into v_held, v_holds_end_at
                    from headroom.holds_of(p_user_id, v_terms.billing_period, v_now) as holds;
                end if;
                v_standing := headroom.standing_from(v_terms, v_row, v_held, v_now);
                v_used := v_standing.used;
                v_released := 0;
                -- An unlimited count stops at the largest integer instead of failing.
                v_limit := coalesce(v_standing."limit", 9223372036854775807);
                v_is_changed := v_row_exists and v_terms.lapse is null
                    and (v_row.plan_revision <> v_terms.plan_revision
                        or v_row.usable_until is distinct from case
                            when v_terms.is_known then least(v_terms.usable_until, v_holds_end_at)
                            else '-infinity'
                        end);
                v_is_read := true;
            end if;
            v_standing.used := v_used;
            v_standing.held := least(v_held, 2147483647);
            v_answer := v_standing;
            v_key := null;
            if p_keys[i] is not null then
                select * into v_key from headroom.message_keys as keys
                where keys.user_id = p_user_id and keys.key = p_keys[i]
                for update;
            end if;

            if v_verb in ('consume', 'reserve', 'check') then
                if v_key.key is not null then
                    v_answer := headroom.replay(v_standing, v_key, v_verb, v_messages);
                    exit;
                elsif v_terms.lapse is not null or v_used + v_held + v_messages > v_limit then
                    v_answer.verdict := 'blocked';
                    exit;
                elsif v_verb = 'check' then
                    v_answer.verdict := 'allowed';
                    exit;
                end if;
                -- Also where there is a row: an operator, a grant or an older client may have made it.
                if not v_terms.is_known then
                    if not headroom.introduce(p_user_id, v_terms) then
                        if i > 1 then
                            -- What came before may not be written yet, and must not be forgotten by looking again.
                            raise exception 'another session made user % known', p_user_id
                                using errcode = 'serialization_failure', hint = 'Try again.';
                        end if;
                        v_is_read := false;
                        continue;
                    end if;
                    v_terms.is_known := true;
                end if;
                if not v_row_exists then
                    insert into public.message_usage (user_id, billing_period, updated_at, plan)
                    values (p_user_id, v_terms.billing_period, v_now, v_terms.plan)
                    on conflict (user_id, billing_period) do nothing
                    returning * into v_row;
                    v_row_exists := found;
                    if not v_row_exists then
                        v_is_read := false;
                        continue;
                    end if;
                end if;
                v_is_changed := true;
                v_expires_at := null;
                if v_verb = 'consume' then
                    v_used := least(v_used + v_messages, 2147483647);
                    v_answer.verdict := 'allowed';
                else
                    v_held := v_held + v_messages;
                    v_expires_at := v_now + make_interval(secs => p_ttls_s[i]);
                    v_holds_end_at := least(v_holds_end_at, v_expires_at);
                    v_answer.verdict := 'held';
                end if;
                if p_keys[i] is not null then
                    insert into headroom.message_keys (
                        user_id, created_at, generation, messages, used, held, "limit", expires_at, verb, status,
                        billing_period, key
                    ) values (
                        p_user_id, v_now, v_row.generation, v_messages, v_used, least(v_held, 2147483647),
                        v_standing."limit", v_expires_at, case v_verb when 'reserve' then 'r' else 'c' end,
                        case v_verb when 'reserve' then 'h' else 'c' end, v_terms.billing_period, p_keys[i]
                    );
                end if;
                v_answer.messages := v_messages;

            elsif v_verb in ('commit', 'release') and v_key.key is null then
                v_answer.verdict := 'unknown_key';

            elsif v_verb = 'commit' then
                if v_key.verb <> 'r' then
                    v_answer.verdict := 'conflict';
                elsif v_key.status = 'r' then
                    v_answer.verdict := 'released_key';
                elsif v_key.status = 'c' then
                    v_answer := headroom.replay(v_standing, v_key, 'commit', v_key.messages);
                    exit;
                elsif v_key.expires_at <= v_now then
                    v_answer.verdict := 'expired';
                elsif v_key.billing_period = v_terms.billing_period and v_row_exists then
                    v_held := v_held - v_key.messages;
                    v_used := least(v_used + v_key.messages, 2147483647);
                    v_is_changed := true;
                    update headroom.message_keys as keys
                    set status = 'c', committed_used = v_used,
                        committed_held = least(v_held, 2147483647),
                        committed_limit = v_standing."limit", generation = v_row.generation
                    where keys.user_id = p_user_id and keys.key = v_key.key;
                    v_answer.verdict := 'allowed';
                    v_answer.messages := v_key.messages;
                    v_answer.lapse := null;
                else
                    -- The period ended meanwhile: the message counts where it was held.
                    perform from public.message_usage as usage
                    where usage.user_id = p_user_id and usage.billing_period = v_key.billing_period
                    for update;
                    if not found then
                        -- An operator deleted the row, and the hold with it.
                        v_answer.verdict := 'expired';
                    else
                        -- Looked up with the row locked; what the row itself says may have expired since.
                        select least(holds.held - v_key.messages, 2147483647) into v_key.committed_held
                        from headroom.holds_of(p_user_id, v_key.billing_period, v_now) as holds;
                        update public.message_usage as usage
                        set message_count = least(usage.message_count::bigint + v_key.messages, 2147483647),
                            held = v_key.committed_held, updated_at = v_now
                        where usage.user_id = p_user_id and usage.billing_period = v_key.billing_period
                        returning usage.message_count, usage."limit", usage.generation
                        into v_key.committed_used, v_key.committed_limit, v_key.generation;
                        update headroom.message_keys as keys
                        set status = 'c', committed_used = v_key.committed_used,
                            committed_held = v_key.committed_held, committed_limit = v_key.committed_limit,
                            generation = v_key.generation
                        where keys.user_id = p_user_id and keys.key = v_key.key;
                        v_answer := headroom.replay(v_standing, v_key, 'commit', v_key.messages);
                        v_answer.is_replay := false;
                        v_answer.messages := v_key.messages;
                        exit;
                    end if;
                end if;

            elsif v_verb = 'release' then
                v_answer.verdict := 'released';
                if v_key.status = 'r' then
                    v_answer.is_replay := true;
                    exit;
                end if;
                update headroom.message_keys as keys set status = 'r'
                where keys.user_id = p_user_id and keys.key = v_key.key;
                if v_key.status = 'h' and v_key.expires_at > v_now then
                    v_answer.messages := v_key.messages;
                    if v_key.billing_period = v_terms.billing_period then
                        v_held := v_held - v_key.messages;
                        v_is_changed := v_row_exists;
                    else
                        update public.message_usage as usage set held = greatest(usage.held - v_key.messages, 0)
                        where usage.user_id = p_user_id and usage.billing_period = v_key.billing_period;
                    end if;
                elsif v_key.status = 'c' and v_row_exists and v_key.generation = v_row.generation
                    and v_key.billing_period = v_terms.billing_period then
                    v_answer.messages := v_key.messages;
                    v_used := greatest(v_used - v_key.messages, 0);
                    v_released := v_released + v_key.messages;
                    v_is_changed := true;
                elsif v_key.status = 'c' then
                    -- Only off the count that it was in: the generation changes with every reset.
                    update public.message_usage as usage
                    set message_count = greatest(usage.message_count - v_key.messages, 0),
                        released = usage.released + v_key.messages, updated_at = v_now
                    where usage.user_id = p_user_id and usage.billing_period = v_key.billing_period
                        and usage.generation = v_key.generation;
                    if found then
                        v_answer.messages := v_key.messages;
                    end if;
                end if;
            end if;
            v_answer.used := v_used;
            v_answer.held := least(v_held, 2147483647);
            exit;
        end loop;
        v_answers := v_answers || v_answer;
    end loop;

    if v_is_changed then
        update public.message_usage as usage
        set message_count = v_used,
            held = least(v_held, 2147483647),
            released = usage.released + v_released,
            updated_at = case when v_used <> usage.message_count or v_held <> usage.held then v_now else usage.updated_at end,
            "limit" = v_standing."limit", plan_limit = v_terms.allowance,
            plan = v_terms.plan, state = v_terms.state, started_at = v_terms.started_at,
            resets_at = v_terms.resets_at, expires_at = v_terms.expires_at,
            previous_plan = v_terms.previous_plan,
            usable_until = case
                -- A lapsed user's row is changed by a commit or a release only, and is not to be counted in. Nor is
                -- that of a user who is not known yet, whose first message comes here to start the trial.
                when v_terms.lapse is null and v_terms.is_known then least(v_terms.usable_until, v_holds_end_at)
                else '-infinity'
            end,
            plan_revision = v_terms.plan_revision
        where usage.user_id = p_user_id and usage.billing_period = v_terms.billing_period;
    end if;
    return v_answers;
end
$$;

-- For callers that bring their own period and limit, from before there were plans here. p_limit null is unlimited. A
-- row that Headroom counts in under a plan keeps the plan's limit; p_limit then only decides about this message.
create or replace function public.increment_and_check_usage(
    p_user_id uuid, p_billing_period text, p_limit integer
) returns jsonb
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_count integer;
    v_held integer;
    v_allowed boolean;
begin
    if p_user_id is null or p_billing_period is null then
        raise exception 'p_user_id and p_billing_period must not be null' using errcode = 'null_value_not_allowed';
    elsif not (headroom.is_month(p_billing_period) or p_billing_period ~ '^[a-z][a-z0-9_]{0,31}$') then
        raise exception 'p_billing_period must be YYYY-MM, or a plan that never resets, such as trial'
            using errcode = 'invalid_parameter_value';
    elsif p_limit < 0 then
        raise exception 'p_limit must not be negative' using errcode = 'invalid_parameter_value';
    end if;
    if not headroom.is_month(p_billing_period) then
        -- A spent trial is spent here too.
        perform headroom.bring_back(p_user_id);
    end if;
    if coalesce(p_limit, 1) > 0 then
        -- Holds that have ended by themselves must not refuse a message. They are added up with the row locked, or a
        -- hold that is being made would be missed.
        perform from public.message_usage as usage
        where usage.user_id = p_user_id and usage.billing_period = p_billing_period and usage.held > 0
        for update;
        if found then
            update public.message_usage as usage set held = headroom.held_now(usage)
            where usage.user_id = p_user_id and usage.billing_period = p_billing_period;
        end if;
        insert into public.message_usage as usage (user_id, billing_period, message_count, "limit", updated_at)
        values (p_user_id, p_billing_period, 1, p_limit, headroom.now())
        on conflict (user_id, billing_period) do update
        set message_count = least(usage.message_count::bigint + 1, 2147483647),
            "limit" = case when usage.plan is null then excluded."limit" else usage."limit" end,
            updated_at = excluded.updated_at
        where usage.message_count::bigint + usage.held < coalesce(p_limit::bigint, 9223372036854775807)
        returning usage.message_count, usage.held into v_count, v_held;
    end if;
    v_allowed := v_count is not null;
    if not v_allowed then
        select usage.message_count, headroom.held_now(usage) into v_count, v_held
        from public.message_usage as usage
        where usage.user_id = p_user_id and usage.billing_period = p_billing_period;
    end if;
    return jsonb_build_object(
        'allowed', v_allowed,
        'current_count', coalesce(v_count, 0),
        'limit', p_limit,
        'remaining', greatest(p_limit::bigint - coalesce(v_count, 0) - coalesce(v_held, 0), 0)
    );
end
$$;

-- Operators -----------------------------------------------------------------------------------------------------------

-- Sets a user's count to 0, in the current period or in the one named. Returns the user's usage now.
create or replace function public.reset_usage(p_user_id uuid, p_billing_period text default null)
    returns headroom.answer
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_period text := p_billing_period;
    v_before public.message_usage;
    v_after public.message_usage;
begin
    if p_user_id is null then
        raise exception 'p_user_id is null: pass the user''s uuid' using errcode = 'null_value_not_allowed';
    end if;
    perform headroom.bring_back(p_user_id);
    if v_period is null then
        v_period := (headroom.peek(p_user_id, headroom.unknown_users())).billing_period;
    end if;
    select * into v_before from public.message_usage as usage
    where usage.user_id = p_user_id and usage.billing_period = v_period
    for update;
    if not found and p_billing_period is not null then
        raise exception 'user % has no usage in period %', p_user_id, quote_literal(p_billing_period)
            using errcode = 'no_data_found', hint = 'select billing_period from message_usage where user_id = … lists the periods.';
    end if;
    update public.message_usage as usage
    set message_count = 0, updated_at = headroom.now()
    where usage.user_id = p_user_id and usage.billing_period = v_period
    returning * into v_after;
    perform headroom.record_change(
        p_user_id, v_period, 'reset', headroom.usage_record(v_before), headroom.usage_record(v_after)
    );
    return headroom.answer_to(p_user_id, headroom.peek(p_user_id, headroom.unknown_users()), 0);
end
$$;

-- Sets everybody's count in a period to 0 and says how many rows that were. Locks them in the order of user_id, as
-- every batch does, so that it cannot deadlock with the running service; messages of these users wait until it commits.
create or replace function public.reset_billing_period(p_billing_period text) returns bigint
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_rows bigint;
begin
    if p_billing_period is null
        or not (headroom.is_month(p_billing_period) or p_billing_period ~ '^[a-z][a-z0-9_]{0,31}$') then
        raise exception 'p_billing_period must be YYYY-MM, or a plan that never resets, such as trial'
            using errcode = 'invalid_parameter_value';
    end if;
    with locked as (
        select usage.user_id, headroom.usage_record(usage) as record from public.message_usage as usage
        where usage.billing_period = p_billing_period and usage.message_count > 0
        order by usage.user_id
        for update
    ),
    changed as (
        update public.message_usage as usage
        set message_count = 0, updated_at = headroom.now()
        from locked
        where usage.user_id = locked.user_id and usage.billing_period = p_billing_period
        returning usage.user_id, locked.record as before, headroom.usage_record(usage) as after
    )
    -- As headroom.record_change writes it, for all in one statement.
    insert into headroom.audit_log (user_id, billing_period, action, before, after, reason, actor)
    select
        changed.user_id, p_billing_period, 'reset_period', changed.before, changed.after,
        nullif(current_setting('headroom.reason', true), ''), headroom.actor()
    from changed;
    get diagnostics v_rows = row_count;
    return v_rows;
end
$$;

-- Puts a user on a plan, from the next message on; the count of the period stays. What is left out is as if never
-- said, except the anchor day and the start of a trial, which stay. Returns the user's usage under the new plan.
create or replace function public.set_plan(
    p_user_id uuid,
    p_plan text,
    p_state text default null,
    p_started timestamptz default null,
    p_expires timestamptz default null,
    p_grace_until timestamptz default null,
    p_anchor integer default null
) returns headroom.answer
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_plan headroom.plans;
    v_state text;
    v_subscriber headroom.subscribers;
    v_before headroom.terms;
    v_record jsonb;
    v_started timestamptz := p_started;
    v_expires timestamptz := p_expires;
    v_grace_until timestamptz := p_grace_until;
begin
    if p_user_id is null or p_plan is null then
        raise exception 'p_user_id and p_plan must not be null' using errcode = 'null_value_not_allowed';
    elsif p_anchor not between 1 and 31 then
        raise exception 'p_anchor must be a day of the month, 1 to 31' using errcode = 'invalid_parameter_value';
    elsif not (isfinite(coalesce(p_started, v_now)) and isfinite(coalesce(p_expires, v_now))
        and isfinite(coalesce(p_grace_until, v_now))) then
        raise exception 'an instant must be a real date; leave it out for never'
            using errcode = 'invalid_parameter_value';
    end if;
    select * into v_plan from headroom.plans where plan = p_plan;
    if not found then
        raise exception 'there is no plan %', quote_literal(p_plan)
            using errcode = 'no_data_found', hint = 'select plan from headroom.plans lists them.';
    end if;
    v_state := coalesce(p_state, case v_plan.cycle when 'trial' then 'trial' when 'lifetime' then 'free' else 'active' end);
    if not v_state = any (case v_plan.cycle
        when 'trial' then array['trial', 'expired', 'revoked']
        when 'lifetime' then array['free', 'expired', 'revoked']
        else array['active', 'cancelled', 'grace_period', 'billing_retry', 'expired', 'revoked']
    end) then
        raise exception 'state % does not fit plan %', quote_literal(v_state), quote_literal(p_plan)
            using errcode = 'invalid_parameter_value', hint = case v_plan.cycle
                when 'trial' then 'A trial is trial, expired or revoked.'
                when 'lifetime' then 'A plan that never resets is free, expired or revoked.'
                else 'A monthly plan is active, cancelled, grace_period, billing_retry, expired or revoked.'
            end;
    end if;

    insert into headroom.subscribers (user_id) values (p_user_id) on conflict (user_id) do nothing;
    select * into strict v_subscriber from headroom.subscribers where user_id = p_user_id for update;
    v_before := headroom.terms_of(p_user_id, v_now, 'deny');
    v_record := headroom.plan_record(v_before, v_subscriber);
    if v_plan.cycle = 'trial' then
        v_started := coalesce(p_started, v_subscriber.trial_started_at, v_now);
    end if;
    update headroom.subscribers
    set declared_at = v_now,
        anchor_day = coalesce(p_anchor, anchor_day),
        trial_started_at = case v_plan.cycle when 'trial' then v_started else trial_started_at end,
        trial_ends_at = case when v_plan.cycle <> 'trial' then trial_ends_at end,
        previous_plan = case
            when v_before.is_known and v_before.cycle = 'monthly' and v_before.plan <> p_plan then v_before.plan
            else previous_plan
        end
    where user_id = p_user_id
    returning * into v_subscriber;

    case v_state
        when 'cancelled' then
            -- A store cancels to the end of what was paid for.
            v_expires := coalesce(p_expires, headroom.cycle_start(
                (headroom.cycle_month(v_now, v_subscriber.anchor_day) + interval '1 month')::date, v_subscriber.anchor_day
            ));
        when 'grace_period' then
            v_grace_until := coalesce(p_grace_until, coalesce(p_expires, v_now) + interval '16 days');
        when 'billing_retry' then
            v_grace_until := least(p_grace_until, v_now);
            -- Paid time that is left would be access; where nobody told of any, there is none to end.
            v_expires := case when p_expires > v_now then v_now else p_expires end;
        when 'expired' then
            v_expires := least(p_expires, v_now);
        else
            null;
    end case;
    delete from headroom.subscriptions where user_id = p_user_id;
    insert into headroom.subscriptions (
        user_id, original_transaction_id, plan, started_at, expires_at, grace_until, billing_issue_at, unsubscribed_at,
        revoked_at
    ) values (
        p_user_id, 'operator', p_plan, v_started, v_expires,
        case when v_state in ('grace_period', 'billing_retry') then v_grace_until end,
        case when v_state in ('grace_period', 'billing_retry') then v_now end,
        case
            when v_state = 'cancelled' then v_now
            when v_state = 'expired' and v_plan.cycle = 'trial' then v_expires
        end,
        case when v_state = 'revoked' then v_now end
    );
    -- The next message of this user finds no usable row, resolves the new terms and keeps the count.
    update public.message_usage as usage
    set usable_until = '-infinity'
    where usage.user_id = p_user_id and usage.usable_until > '-infinity';
    perform headroom.record_change(
        p_user_id, null, 'plan', v_record,
        headroom.plan_record(headroom.terms_of(p_user_id, v_now, 'deny'), v_subscriber)
    );
    return headroom.answer_to(p_user_id, headroom.peek(p_user_id, 'deny'), 0);
end
$$;

-- Raises this period's limit by p_messages, and makes the period's row where there is none; it starts no trial. True
-- when p_key had granted the same before, and nothing was done now. Raises HR002 when it had granted another number.
create function headroom.grant_once(
    p_user_id uuid, p_messages integer, p_reason text, p_key text, p_unknown_users text
) returns boolean
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_terms headroom.terms;
    v_before public.message_usage;
    v_after public.message_usage;
    v_granted integer;
    v_limit integer;
begin
    if p_user_id is null or p_messages is null then
        raise exception 'p_user_id and p_messages must not be null' using errcode = 'null_value_not_allowed';
    elsif p_messages not between 1 and 1000000 then
        raise exception 'p_messages must be 1 to 1000000' using errcode = 'invalid_parameter_value';
    elsif not (octet_length(p_key) between 1 and 128 and p_key !~ '[[:cntrl:]]') then
        raise exception 'p_key must be 1 to 128 bytes without control characters'
            using errcode = 'invalid_parameter_value';
    elsif octet_length(p_reason) > 1024 or p_reason ~ '[[:cntrl:]]' then
        raise exception 'p_reason must be one line of at most 1024 bytes' using errcode = 'invalid_parameter_value';
    end if;
    perform headroom.bring_back(p_user_id);
    -- As a message does, so that neither the plan nor the period changes before this is written.
    perform from headroom.subscribers where user_id = p_user_id for no key update;
    v_terms := headroom.terms_of(p_user_id, v_now, p_unknown_users);

    -- Another session with the same key is waited for here.
    insert into headroom.grants (user_id, key, billing_period, messages, reason, granted_at, actor)
    values (
        p_user_id, coalesce(p_key, 'unnamed ' || gen_random_uuid()), v_terms.billing_period, p_messages, p_reason,
        v_now, headroom.actor()
    )
    on conflict (user_id, key) do nothing;
    if not found then
        select messages into strict v_granted from headroom.grants where user_id = p_user_id and key = p_key;
        if v_granted <> p_messages then
            raise exception 'this key granted % messages before, not %', v_granted, p_messages
                using errcode = 'HR002', hint = 'Use a new key for a new grant.';
        end if;
        return true;
    end if;

    insert into public.message_usage (user_id, billing_period, updated_at, plan, plan_limit, "limit")
    values (p_user_id, v_terms.billing_period, v_now, v_terms.plan, v_terms.allowance, v_terms.allowance)
    on conflict (user_id, billing_period) do nothing
    returning * into v_after;
    select * into strict v_before from public.message_usage as usage
    where usage.user_id = p_user_id and usage.billing_period = v_terms.billing_period
    for update;
    v_limit := headroom.limit_in_force(v_before, v_terms.allowance);
    if greatest(coalesce(v_before.granted, 0), v_limit)::bigint + p_messages > 2147483647 then
        raise exception 'the limit would be more than 2147483647' using errcode = 'numeric_value_out_of_range';
    end if;
    update public.message_usage as usage
    set granted = coalesce(usage.granted, 0) + p_messages,
        "limit" = v_limit + p_messages, plan_limit = v_terms.allowance,
        plan = v_terms.plan, state = v_terms.state, started_at = v_terms.started_at, resets_at = v_terms.resets_at,
        expires_at = v_terms.expires_at, previous_plan = v_terms.previous_plan, plan_revision = v_terms.plan_revision,
        -- Whether it may be counted in is for the next message to find out, which may be the first of a trial.
        usable_until = '-infinity'
    where usage.user_id = p_user_id and usage.billing_period = v_terms.billing_period
    returning * into v_after;
    perform headroom.record_change(
        p_user_id, v_terms.billing_period, 'grant', headroom.usage_record(v_before), headroom.usage_record(v_after),
        p_reason
    );
    return false;
end
$$;

-- Grants a user messages beyond the plan's, for the current period. With a key it grants once, however often it is
-- called; without one, each call grants. Returns the user's usage now.
create function public.grant_messages(
    p_user_id uuid, p_messages integer, p_reason text default null, p_key text default null
) returns headroom.answer
    language plpgsql set search_path = pg_catalog
as $$
begin
    if headroom.grant_once(p_user_id, p_messages, p_reason, p_key, headroom.unknown_users()) then
        raise notice 'this key granted these messages before; nothing was changed';
    end if;
    return headroom.answer_to(p_user_id, headroom.peek(p_user_id, headroom.unknown_users()), 0);
end
$$;

-- Deletes all that is known of a user, but for what is left of a trial that was started, under a keyed hash. Returns
-- how many rows that were.
create function public.forget_user(p_user_id uuid) returns bigint
    language plpgsql set search_path = pg_catalog
as $$
declare
    v_subscriber headroom.subscribers;
    v_rows bigint;
    v_count bigint;
begin
    if p_user_id is null then
        raise exception 'p_user_id is null: pass the user''s uuid' using errcode = 'null_value_not_allowed';
    end if;
    -- A row to hold on to, also for a user who is not known yet: a first message that is on its way comes before this
    -- or after it. It brings a spent trial back, which is spent again below; none of that was there to be forgotten.
    select -1 - count(*) into v_rows from headroom.spent_trials as spent
    where spent.digest = headroom.digest_of(p_user_id);
    insert into headroom.subscribers (user_id) values (p_user_id) on conflict (user_id) do nothing;
    if not found then
        v_rows := 0;
    end if;
    select * into strict v_subscriber from headroom.subscribers where user_id = p_user_id for update;

    with gone as (
        delete from public.message_usage as usage where usage.user_id = p_user_id
        returning usage.billing_period, usage.message_count
    ),
    trials as (
        select
            plans.plan,
            coalesce(least(min(subscription.revoked_at), min(subscription.expires_at)), v_subscriber.trial_ends_at)
                as trial_ends_at,
            coalesce(v_subscriber.trial_started_at, min(subscription.started_at)) as trial_started_at,
            coalesce(max(gone.message_count), 0) as messages
        from headroom.plans as plans
        left join gone on gone.billing_period = plans.plan
        left join headroom.subscriptions as subscription
            on subscription.user_id = p_user_id and subscription.plan = plans.plan
        where plans.cycle = 'trial'
            and (gone.billing_period is not null or subscription.plan is not null or plans.plan = 'trial')
        group by plans.plan
    ),
    spent as (
        insert into headroom.spent_trials (digest, plan, trial_started_at, trial_ends_at, messages)
        select
            headroom.digest_of(p_user_id), trials.plan, trials.trial_started_at, trials.trial_ends_at, trials.messages
        from trials
        where trials.trial_started_at is not null or trials.messages > 0
    )
    select count(*) into v_count from gone;
    v_rows := v_rows + v_count;
    delete from headroom.message_keys where user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.grants where user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.audit_log where user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    if to_regclass('headroom.store_events') is not null then
        execute 'delete from headroom.store_events where user_id = $1' using p_user_id;
        get diagnostics v_count = row_count;
        v_rows := v_rows + v_count;
    end if;
    delete from headroom.subscriptions where user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    delete from headroom.subscribers where user_id = p_user_id;
    get diagnostics v_count = row_count;
    v_rows := v_rows + v_count;
    perform headroom.record_change(null, null, 'forget', null, jsonb_build_object('rows', v_rows));
    return v_rows;
end
$$;
