-- A billing period's users and messages by tier, in some of the table's pages.
--
-- $1, $2 bigint: the first page, and the first one after. $3 text: the billing period, or null for all that are open now.
--
-- By pages, because there is no index on the period, and a second index would end HOT updates of every message counted.
select usage.tier, count(*) as users, sum(greatest(usage.message_count, 0))::bigint as messages
from headroom.usage_rows as usage
where usage.ctid >= ('(' || $1::bigint || ',0)')::tid and usage.ctid < ('(' || $2::bigint || ',0)')::tid
    and case when $3::text is null then usage.is_open else usage.billing_period = $3 end
group by usage.tier;
