-- All billing periods' users and messages by plan and tier, and whether they are open now, in some of the table's pages.
--
-- $1, $2 bigint: the first page, and the first one after.
--
-- As read_report_page_range, for all periods at once: twelve of them cost one walk over the table instead of twelve.
select
    usage.billing_period, usage.tier, usage.is_open, count(*) as users,
    sum(greatest(usage.message_count, 0))::bigint as messages, usage.plan
from headroom.usage_rows as usage
where usage.ctid >= ('(' || $1::bigint || ',0)')::tid and usage.ctid < ('(' || $2::bigint || ',0)')::tid
group by usage.billing_period, usage.plan, usage.tier, usage.is_open;
