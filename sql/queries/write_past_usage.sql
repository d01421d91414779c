-- Writes the counts of a usage row of a period that is not open, which the transaction has locked. $1 smallint: bucket.
-- $2 uuid: user. $3 text: period. $4 integer, $5 integer: message_count and held. $6 integer: messages to add to
-- released.
update public.message_usage as usage
set message_count = $4::integer, held = $5::integer,
    released = least(usage.released::bigint + $6::integer, 2147483647),
    updated_at = case when usage.message_count <> $4::integer then clock.now else usage.updated_at end
-- Citus refuses the function in CASE.
from (select headroom.now() as now) as clock
where usage.bucket = $1 and usage.user_id = $2 and usage.billing_period = $3;
