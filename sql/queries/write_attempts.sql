-- Writes the results of attempts to deliver notifications. $1 text[]: ids. $2 integer[]: attempts before. $3 text[]:
-- the failure; null is delivered. $4 bigint[]: milliseconds until the next attempt; null is none.
select headroom.write_attempts($1::uuid[], $2::integer[], $3::text[], $4::bigint[]);
