-- Returns what follows from one subscription alone at p_at: when it began and when its access ends (ends_at; null is
-- never); whether a store renews it (renews; null if it does not come from a store); its state; why it gives no access
-- (denial_reason; null if it does); when time alone changes that next (changes_at; null is never); until when it gives
-- access if it was bought (bought_until; null for a trial and the free plan); and the instant whose period counts
-- (counts_at).
--
-- The event of a renewal comes after the renewal. So a subscription that a store renews keeps access for p_leeway after
-- the end of the paid time (headroom.renewal_leeway), and counts in the period that has ended.
--
-- If several states apply, the first one in the order below is returned. A cancelled trial still ends as a trial.
-- Intervals are half-open: at ends_at access has ended. There is no row if p_cycle is null.
--
-- p_transaction_id: null for a user without a subscription, who gets a trial that starts at p_trial_started_at or now,
-- the free plan, or nothing. p_trial_started_at, p_trial_ends_at: the trial of the subscriber, or of the spent trials
-- of a forgotten user. p_started_at: headroom.trial_start.
--
-- PostgreSQL inlines the function. Each offset keeps a value from being computed for each of its uses. The sums are of
-- hours and days of UTC, so the result does not depend on the session.
create or replace function headroom.judged_subscription(
    p_at timestamptz, p_unknown_users_policy text, p_transaction_id text, p_plan text, p_cycle text,
    p_trial_days integer, p_started_at timestamptz, p_expires_at timestamptz, p_grace_until timestamptz,
    p_billing_issue_at timestamptz, p_unsubscribed_at timestamptz, p_revoked_at timestamptz, p_renews boolean,
    p_trial_started_at timestamptz, p_trial_ends_at timestamptz, p_leeway interval
) returns table (
    started_at timestamptz, ends_at timestamptz, renews boolean, state text, denial_reason text,
    changes_at timestamptz, bought_until timestamptz, counts_at timestamptz
)
    language sql immutable
begin atomic
    select
        stated.started_at, stated.ends_at,
        case
            when p_transaction_id not in ('operator', 'first message')
                then p_unsubscribed_at is null and p_revoked_at is null and stated.ends_at is not null
                    and coalesce(p_renews, true)
        end as renews,
        stated.state,
        case
            when stated.state in ('revoked', 'expired', 'billing_retry') then stated.state
            when stated.state = 'trial' and p_at >= stated.ends_at then 'trial_ended'
            when p_transaction_id is null and p_unknown_users_policy = 'deny' then 'no_subscription'
        end as denial_reason,
        least(
            case when stated.ends_at > p_at then stated.ends_at end,
            case when p_revoked_at > p_at then p_revoked_at end
        ) as changes_at,
        case
            when p_cycle <> 'trial' and p_plan <> 'free'
                then least(p_revoked_at, greatest(p_expires_at, p_grace_until), 'infinity')
        end as bought_until,
        case when stated.is_awaited then p_expires_at - interval '1 microsecond' else p_at end as counts_at
    from (
        select dated.started_at, dated.ends_at, dated.is_awaited, case
            when p_revoked_at <= p_at then 'revoked'
            -- A trial that was ended is expired; one that has run out, or was cancelled before its end, is still a
            -- trial.
            when p_cycle = 'trial' then case
                when p_at >= dated.ends_at and p_unsubscribed_at >= dated.ends_at then 'expired' else 'trial'
            end
            when p_billing_issue_at is not null
                then case when p_at < dated.ends_at then 'grace_period' else 'billing_retry' end
            when p_expires_at <= p_at and not dated.is_awaited then 'expired'
            when p_cycle = 'lifetime' then 'free'
            when p_unsubscribed_at is not null then 'cancelled'
            else 'active'
        end as state
        from (
            select begun.started_at, begun.is_awaited, case
                when p_cycle = 'trial' then coalesce(
                    case when p_transaction_id is null then p_trial_ends_at else p_expires_at end,
                    headroom.at_most_latest(begun.started_at + make_interval(hours => 24 * p_trial_days))
                )
                -- This is the date of the store, or 16 days after expiry if the store gives none.
                when p_billing_issue_at is not null then greatest(
                    p_expires_at,
                    coalesce(p_grace_until, headroom.at_most_latest(p_expires_at + make_interval(hours => 24 * 16)))
                )
                when begun.is_awaited then p_expires_at + p_leeway
                else p_expires_at
            end as ends_at
            from (
                select
                    case
                        when p_transaction_id is null then coalesce(p_trial_started_at, p_at) else p_started_at
                    end as started_at,
                    headroom.is_renewal_awaited(
                        p_at, p_transaction_id, p_cycle, p_expires_at, p_billing_issue_at, p_unsubscribed_at,
                        p_revoked_at, p_renews, p_leeway
                    ) as is_awaited
                where p_cycle is not null
                offset 0
            ) as begun
            offset 0
        ) as dated
        offset 0
    ) as stated;
end;
