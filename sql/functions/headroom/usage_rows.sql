-- Usage rows with their tier, and with is_open: whether the period is the one that counts for its user now. A user has
-- at most one open period, also with a lifetime allowance beside a monthly one.
--
-- A period that has not ended is open if its row is usable. Otherwise the user's other rows are looked up by index,
-- which takes about 15 microseconds: for subscribers without access, and for rows that a change of plan left. A window
-- function would need all rows of a user at once, but reports read ranges of pages.
create or replace view headroom.usage_rows as
with rows_with_end as not materialized (
    select
        usage.*,
        usage.ctid,
        case
            when usage.resets_at is not null then usage.resets_at > headroom.now()
            -- The user has no plan, or the row was inserted manually: only the label is known.
            when usage.plan is null or usage.billing_period ~ '^[0-9]'
                then usage.billing_period = to_char(headroom.now() at time zone 'UTC', 'YYYY-MM')
            else coalesce(usage.expires_at, 'infinity') > headroom.now()
        end as has_not_ended
    from public.message_usage as usage
)
select
    usage.user_id,
    usage.billing_period,
    usage.plan,
    usage.state,
    usage.message_count,
    case usage.held
        when 0 then 0
        else headroom.held_messages(usage.user_id, usage.billing_period, usage.held)
    end as held,
    usage."limit",
    -- Rows without holds, which are nearly all, are a case of their own: PostgreSQL inlines headroom.tier_of only with
    -- so simple an argument, and a call per row would take most of the time of a report.
    case usage.held
        when 0 then headroom.tier_of(
            usage.message_count::bigint, usage."limit", plans.gentle_percent, plans.prominent_percent
        )
        else headroom.tier_of(
            usage.message_count::bigint + headroom.held_messages(usage.user_id, usage.billing_period, usage.held),
            usage."limit", plans.gentle_percent, plans.prominent_percent
        )
    end as tier,
    usage.resets_at,
    usage.expires_at,
    usage.updated_at,
    usage.ctid,
    case
        when not usage.has_not_ended then false
        -- After an edit of the plan's cycle, its old rows would still be usable.
        when usage.usable_until > headroom.now() and (usage.resets_at is null) = (plans.cycle in ('trial', 'lifetime'))
            then true
        when usage.plan is null
            and not exists (
                select from headroom.subscriptions as subscription
                where subscription.bucket = usage.bucket and subscription.user_id = usage.user_id
            )
            then true
        else not exists (
            select
            from rows_with_end as other
            where other.bucket = usage.bucket and other.user_id = usage.user_id
                -- All labels that can be open, because the index of an adopted table may begin with the period.
                and other.billing_period = any(array(
                    select never_resets.plan from headroom.plans as never_resets
                    where never_resets.cycle in ('trial', 'lifetime')
                    union all
                    select to_char(headroom.now() at time zone 'UTC' + ahead * interval '1 month', 'YYYY-MM')
                    from generate_series(-1, 0) as ahead
                ))
                and other.has_not_ended
                and (
                    other.plan is not null, other.usable_until > headroom.now(), other.plan_revision, other.generation,
                    other.billing_period
                ) > (
                    usage.plan is not null, usage.usable_until > headroom.now(), usage.plan_revision, usage.generation,
                    usage.billing_period
                )
        )
    end as is_open
from rows_with_end as usage
left join headroom.plans as plans on plans.plan = usage.plan;
comment on view headroom.usage_rows is
    'Usage rows with their tier, and whether their period is the open one of their user.';
grant select on headroom.usage_rows to headroom_service;
