-- Sums up a billing period by tier, in a range of the table's pages. $1, $2 bigint: the first page, and the first page
-- after the range. $3 text: billing period; null is all periods that are open now. $4 text: the beginning of other
-- labels that are summed up, too; null is no others.
--
-- The table is read by pages, because the period has no index: a second index would end HOT updates of counted
-- messages.
select usage.tier, count(*) as users, sum(greatest(usage.used, 0))::bigint as messages
from headroom.usage_rows as usage
where usage.ctid >= ('(' || $1::bigint || ',0)')::tid and usage.ctid < ('(' || $2::bigint || ',0)')::tid
    and case
        when $3::text is null then not usage.has_ended and usage.is_open
        else usage.billing_period = $3 or starts_with(usage.billing_period, $4::text)
    end
group by usage.tier;
