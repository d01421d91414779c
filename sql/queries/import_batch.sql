-- Imports rows of a file, or only judges them if $5 is true. Parameters: headroom.import_batch. $1 bytea: SHA-256 of
-- the file. $2 boolean: whether counts are added. $3 bigint, $4 bigint: the numbers of rows that were done before, and
-- are after it. $6 to $18: the rows.
select done.ordinal, done.outcome, done.keeps_plan
from headroom.import_batch(
    $1::bytea, $2::boolean, $3::bigint, $4::bigint, array(
        select row(
            given.place, given.user_id, given.plan, given.state, given.started_at, given.expires_at, given.grace_until,
            given.anchor_day, given.billing_period, given.used, given.has_limit, given."limit",
            given.part_kind, given.part_name
        )::headroom.import_row
        from unnest(
            $6::uuid[], $7::text[], $8::text[], $9::timestamptz[], $10::timestamptz[], $11::timestamptz[],
            $12::integer[], $13::text[], $14::integer[], $15::boolean[], $16::integer[], $17::text[], $18::text[]
        ) with ordinality as given (
            user_id, plan, state, started_at, expires_at, grace_until, anchor_day, billing_period, used, has_limit,
            "limit", part_kind, part_name, place
        )
        order by given.place
    ), $5::boolean
) as done;
