-- Sets last_used_at of tokens, once a minute per token. $1 bigint[]: tokens. Several instances may report the same one.
update headroom.tokens as tokens
set last_used_at = headroom.now()
where tokens.id in (
    select used.id from headroom.tokens as used
    where used.id = any($1) and (used.last_used_at is null or used.last_used_at < headroom.now() - interval '1 minute')
    order by used.id
    -- A session that is revoking a token may hold its row for long.
    for update skip locked
);
