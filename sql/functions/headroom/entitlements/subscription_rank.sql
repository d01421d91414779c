-- Returns the rank of one of a user's subscriptions; the one with the least rank applies. Of equal ones it is the one
-- that ends last, then the one with the greatest transaction_id, so that the result does not depend on the order of the
-- rows. p_paid_until: the latest bought_until of the user's subscriptions. The other parameters are about one
-- subscription (headroom.judged_subscription). PostgreSQL inlines the function.
create or replace function headroom.subscription_rank(
    p_plan text, p_cycle text, p_allowance integer, p_enforced boolean, p_state text, p_denial_reason text,
    p_started_at timestamptz, p_paid_until timestamptz
) returns bigint[]
    language sql immutable
    return array[
        -- Plans that were bought come first, those with access before the others, then trials. A trial that began
        -- after everything bought before it had ended comes first. The free plan comes last.
        case
            when p_plan = 'free' then 4
            when p_cycle <> 'trial' then case when p_denial_reason is null then 0 else 1 end
            when p_denial_reason is not null then 3
            when p_started_at >= p_paid_until then 0
            else 2
        end,
        -- With access, the largest allowance comes first, so that buying more never gives less.
        -coalesce(
            case when p_denial_reason is null
                then headroom.comparable_allowance(p_cycle, p_allowance, p_enforced)
            end,
            9223372036854775807
        ),
        -- A refund comes first, then a billing issue; a cancellation applies only if no other subscription goes on.
        case p_state
            when 'revoked' then 0 when 'billing_retry' then 1 when 'grace_period' then 1 when 'cancelled' then 3
            when 'free' then 4 else 2
        end
    ];
