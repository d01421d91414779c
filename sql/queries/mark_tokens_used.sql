-- $1 bigint[]: tokens that were used. Several instances may tell of the same one: a row is written once a minute.
update headroom.tokens as tokens
set last_used_at = headroom.now()
where tokens.id in (
    select used.id from headroom.tokens as used
    where used.id = any ($1) and (used.last_used_at is null or used.last_used_at < headroom.now() - interval '1 minute')
    order by used.id
    -- Somebody may hold a row for long, in the middle of revoking it: nothing depends on its use being noted.
    for update skip locked
);
