-- Returns the dates of the subscription by which an operator puts a user on a plan, for public.set_plan and imports.
--
-- p_cycle, p_time_zone: the plan's. p_state: null is the usual one of the plan. p_started, p_expires, p_grace_until:
-- null if the operator has given none. p_anchor_day: the user's. p_trial_started_at: when the user's trial began, if
-- one did. p_at: now.
create or replace function headroom.operator_subscription(
    p_cycle text, p_time_zone text, p_state text, p_started timestamptz, p_expires timestamptz,
    p_grace_until timestamptz, p_anchor_day integer, p_trial_started_at timestamptz, p_at timestamptz
) returns table (
    started_at timestamptz, expires_at timestamptz, grace_until timestamptz, billing_issue_at timestamptz,
    unsubscribed_at timestamptz, revoked_at timestamptz
)
    language sql stable
begin atomic
    select
        case when p_cycle = 'trial' then coalesce(p_started, p_trial_started_at, p_at) else p_started end
            as started_at,
        given.expires_at,
        case given.state
            when 'grace_period' then coalesce(
                p_grace_until, least(coalesce(p_expires, p_at) + interval '16 days', '9999-12-31T23:59:59.999999Z')
            )
            when 'billing_retry' then least(p_grace_until, p_at)
        end as grace_until,
        case when given.state in ('grace_period', 'billing_retry') then p_at end as billing_issue_at,
        case
            when given.state = 'cancelled' then p_at
            when given.state = 'expired' and p_cycle = 'trial' then given.expires_at
        end as unsubscribed_at,
        case when given.state = 'revoked' then p_at end as revoked_at
    from (
        select
            named.state,
            case named.state
                when 'cancelled' then
                    -- A store cancels at the end of the paid period.
                    coalesce(p_expires, headroom.period_start(
                        p_cycle,
                        headroom.next_period_day(p_cycle, headroom.period_day(
                            p_cycle, p_at, p_anchor_day, coalesce(p_time_zone, 'UTC')
                        )),
                        p_anchor_day, coalesce(p_time_zone, 'UTC')
                    ))
                -- Remaining paid time would give access. Without an end, there is none.
                when 'billing_retry' then case when p_expires > p_at then p_at else p_expires end
                when 'expired' then least(p_expires, p_at)
                else p_expires
            end as expires_at
        from (
            select coalesce(
                p_state, case p_cycle when 'trial' then 'trial' when 'lifetime' then 'free' else 'active' end
            ) as state
        ) as named
    ) as given;
end;
