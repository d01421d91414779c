-- Counts the users of a month or week who began another period in it, by the row of the earlier one. The later rows are
-- in a range of the table's pages. $1, $2 bigint: the first page, and the first page after the range. $3 text: the
-- month or week; null is all of them.
select
    headroom.unnumbered_label(superseded.billing_period) as billing_period, superseded.tier, superseded.plan,
    count(*) as users
from headroom.superseded_usage_rows as superseded
where superseded.ctid >= ('(' || $1::bigint || ',0)')::tid and superseded.ctid < ('(' || $2::bigint || ',0)')::tid
    and ($3::text is null or starts_with(superseded.billing_period, $3 || '.'))
group by headroom.unnumbered_label(superseded.billing_period), superseded.plan, superseded.tier;
