-- name: read_periods_portion
-- All billing periods' users and messages by tier, in some of the table's pages.
--
-- $1, $2 bigint: the first page, and the first one after.
--
-- As read_report_portion, for all periods at once: twelve of them cost one walk over the table instead of twelve.
select rows_of_period.billing_period, rows_of_period.tier, count(*) as users, sum(rows_of_period.message_count)::bigint as messages
from (
    select
        usage.billing_period,
        usage.message_count,
        case usage.held
            when 0 then headroom.tier_of(
                usage.message_count::bigint, usage."limit", plans.gentle_percent, plans.prominent_percent
            )
            else headroom.tier_of(
                usage.message_count + (
                    select holds.held
                    from headroom.holds_of(usage.user_id, usage.billing_period, headroom.now()) as holds
                ),
                usage."limit", plans.gentle_percent, plans.prominent_percent
            )
        end as tier
    from public.message_usage as usage
    left join headroom.plans as plans on plans.plan = usage.plan
    where usage.ctid >= ('(' || $1::bigint || ',0)')::tid and usage.ctid < ('(' || $2::bigint || ',0)')::tid
) as rows_of_period
group by rows_of_period.billing_period, rows_of_period.tier;
