-- name: read_report_portion
-- A billing period's users and messages by tier, in some of the table's pages.
--
-- $1, $2 bigint: the first page, and the first one after. $3 text: the billing period.
--
-- By pages, because there is no index on the period, and a second index would end HOT updates of every message counted.
-- Rows that hold nothing, as nearly all do, are told apart first: only with so plain an argument is headroom.tier_of
-- inlined, and a call for each row would take most of the time.
select rows_of_period.tier, count(*) as users, sum(rows_of_period.message_count)::bigint as messages
from (
    select
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
        and usage.billing_period = $3
) as rows_of_period
group by rows_of_period.tier;
