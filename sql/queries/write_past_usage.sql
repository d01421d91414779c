-- Writes the counts of a usage row of a period that is not open, which the transaction has locked. $1 uuid: user.
-- $2 text: period. $3 integer, $4 integer: message_count and held. $5 integer: messages to add to released.
update public.message_usage as usage
set message_count = $3::integer, held = $4::integer,
    released = least(usage.released::bigint + $5::integer, 2147483647),
    updated_at = case when usage.message_count <> $3::integer then headroom.now() else usage.updated_at end
where usage.bucket = headroom.bucket_of($1) and usage.user_id = $1 and usage.billing_period = $2;
