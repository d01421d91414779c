-- Sums up all billing periods by plan, tier and is_open, in a range of the table's pages. One scan serves all periods.
-- $1, $2 bigint: the first page, and the first page after the range.
select
    usage.billing_period, usage.tier, usage.is_open, count(*) as users,
    sum(greatest(usage.used, 0))::bigint as messages, usage.plan
from headroom.usage_rows as usage
where usage.ctid >= ('(' || $1::bigint || ',0)')::tid and usage.ctid < ('(' || $2::bigint || ',0)')::tid
group by usage.billing_period, usage.plan, usage.tier, usage.is_open;
