-- The rows of a billing period that count the most messages, in some of the table's pages; ties by user.
--
-- $1, $2 bigint: the first page, and the first one after. $3 text: the billing period, or null for all that are open now.
-- $4 integer: how many rows. $5 integer: rows that count fewer messages are known not to be among them.
select usage.user_id, usage.billing_period, usage.message_count, usage."limit", usage.tier
from headroom.usage_rows as usage
where usage.ctid >= ('(' || $1::bigint || ',0)')::tid and usage.ctid < ('(' || $2::bigint || ',0)')::tid
    and case when $3::text is null then usage.is_open else usage.billing_period = $3 end
    and usage.message_count >= $5::integer
order by usage.message_count desc, usage.user_id
limit $4::integer;
