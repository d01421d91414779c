-- name: read_top_portion
-- The rows of a billing period that count the most messages, in some of the table's pages; ties by user.
--
-- $1, $2 bigint: the first page, and the first one after. $3 text: the billing period. $4 integer: how many rows.
-- $5 integer: rows that count fewer messages are known not to be among them.
select
    most_used.user_id, most_used.message_count, most_used."limit",
    headroom.tier_of(
        most_used.message_count::bigint + headroom.held_now(most_used.usage), most_used."limit", plans.gentle_percent,
        plans.prominent_percent
    ) as tier
from (
    select usage, usage.user_id, usage.message_count, usage."limit", usage.plan
    from public.message_usage as usage
    where usage.ctid >= ('(' || $1::bigint || ',0)')::tid and usage.ctid < ('(' || $2::bigint || ',0)')::tid
        and usage.billing_period = $3 and usage.message_count >= $5::integer
    order by usage.message_count desc, usage.user_id
    limit $4::integer
) as most_used
left join headroom.plans as plans on plans.plan = most_used.plan;
