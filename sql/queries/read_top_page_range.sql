-- Reads the rows of a billing period with the most messages, in a range of the table's pages. Ties are ordered by user.
-- $1, $2 bigint: the first page, and the first page after the range. $3 text: billing period; null is all periods that
-- are open now. $4 integer: rows at most. $5 integer: rows with fewer messages are left out. $6 text: tier, $7 text:
-- plan; null is all of them. $8 text: the beginning of other labels that are listed, too; null is no others.
select usage.user_id, usage.billing_period, usage.used as message_count, usage."limit", usage.tier
from headroom.usage_rows as usage
where usage.ctid >= ('(' || $1::bigint || ',0)')::tid and usage.ctid < ('(' || $2::bigint || ',0)')::tid
    and case
        when $3::text is null then not usage.has_ended and usage.is_open
        else usage.billing_period = $3 or starts_with(usage.billing_period, $8::text)
    end
    and usage.message_count >= $5::integer
    and ($6::text is null or usage.tier = $6)
    and ($7::text is null or usage.plan = $7)
order by usage.used desc, usage.user_id asc
limit $4::integer;
