-- name: read_history
-- A user's periods, newest first. $1 uuid: the user. $2 integer: how many.
--
-- A trial stands where it began. A row that only older clients wrote has no start; its month does.
select
    usage.billing_period, usage.message_count, usage."limit",
    headroom.tier_of(
        usage.message_count::bigint + usage.held, usage."limit", plans.gentle_percent, plans.prominent_percent
    )
from public.message_usage as usage
left join headroom.plans as plans on plans.plan = usage.plan
where usage.user_id = $1
order by
    coalesce(
        usage.started_at,
        case when headroom.is_month(usage.billing_period) then (usage.billing_period || '-01')::timestamp at time zone 'UTC' end,
        usage.updated_at
    ) desc,
    usage.billing_period desc
limit $2;
