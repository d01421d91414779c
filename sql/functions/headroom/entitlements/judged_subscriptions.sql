-- Returns the rows of headroom.dated_subscriptions with what follows from each subscription alone at p_at: its state;
-- why it gives no access (denial_reason, null if it does); when time alone changes that next (changes_at, null: never);
-- until when it gives access if it was bought (bought_until, null for a trial and the free plan); whether a store
-- renews it (renews, null if it does not come from a store). PostgreSQL inlines the function.
--
-- Of several states the first one applies, in the order below. A cancelled trial still ends as a
-- trial. Intervals are half-open: at ends_at access has ended.
create or replace function headroom.judged_subscriptions(
    p_bucket smallint, p_users uuid[], p_at timestamptz, p_unknown_users_policy text
) returns table (
    ordinal bigint, user_id uuid, anchor_day integer, previous_plan text, spent_messages bigint, transaction_id text,
    plan text, cycle text, time_zone text, allowance integer, enforced boolean, window_messages integer,
    window_seconds integer, started_at timestamptz, ends_at timestamptz, renews boolean, state text,
    denial_reason text, changes_at timestamptz, bought_until timestamptz
)
    language sql stable
begin atomic
    with stated as (
        select dated.*, case
            when dated.revoked_at <= p_at then 'revoked'
            -- A trial that was ended is expired; one that has run out, or was cancelled before its end, is still a
            -- trial.
            when dated.cycle = 'trial' then case
                when p_at >= dated.ends_at and dated.unsubscribed_at >= dated.ends_at then 'expired' else 'trial'
            end
            when dated.billing_issue_at is not null
                then case when p_at < dated.ends_at then 'grace_period' else 'billing_retry' end
            when dated.expires_at <= p_at then 'expired'
            when dated.cycle = 'lifetime' then 'free'
            when dated.unsubscribed_at is not null then 'cancelled'
            else 'active'
        end as state
        from headroom.dated_subscriptions(p_bucket, p_users, p_at, p_unknown_users_policy) as dated
        -- Also keeps the state from being computed for each use.
        order by dated.ordinal
    )
    select
        stated.ordinal, stated.user_id, stated.anchor_day, stated.previous_plan, stated.spent_messages,
        stated.transaction_id, stated.plan, stated.cycle, stated.time_zone, stated.allowance, stated.enforced,
        stated.window_messages, stated.window_seconds, stated.started_at, stated.ends_at,
        case
            when stated.transaction_id not in ('operator', 'first message')
                then stated.unsubscribed_at is null and stated.revoked_at is null and stated.ends_at is not null
                    and coalesce(stated.renews, true)
        end as renews,
        stated.state,
        case
            when stated.state in ('revoked', 'expired', 'billing_retry') then stated.state
            when stated.state = 'trial' and p_at >= stated.ends_at then 'trial_ended'
            when stated.transaction_id is null and p_unknown_users_policy = 'deny' then 'no_subscription'
        end as denial_reason,
        least(
            case when stated.ends_at > p_at then stated.ends_at end,
            case when stated.revoked_at > p_at then stated.revoked_at end
        ) as changes_at,
        case
            when stated.cycle <> 'trial' and stated.plan <> 'free'
                then least(stated.revoked_at, greatest(stated.expires_at, stated.grace_until), 'infinity')
        end as bought_until
    from stated;
end;
