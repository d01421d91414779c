-- name: read_tokens
-- The live tokens, oldest first, a row each; one row of nulls where there is none. With each row, whether there ever was
-- a token. expires_in_us: microseconds from now by the database's clock; null is never.
with live as (
    select tokens.id, tokens.name, tokens.scopes, tokens.digest,
        (extract(epoch from tokens.expires_at - headroom.now()) * 1000000)::bigint as expires_in_us
    from headroom.tokens as tokens
    where tokens.revoked_at is null and (tokens.expires_at is null or tokens.expires_at > headroom.now())
)
select ever.was_created, live.id, live.name, live.scopes, live.digest, live.expires_in_us
from (select exists (select from headroom.tokens) as was_created) as ever
left join live on true
order by live.id;
