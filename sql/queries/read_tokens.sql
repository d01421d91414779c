-- The live tokens, oldest first, a row each; one row of nulls where there is none. With each row, whether there ever was
-- a token, and how many are not live because their end is out of range. expires_in_us: microseconds from now by the
-- database's clock; null is never.
with live as (
    select tokens.id, tokens.name, tokens.scopes, tokens.digest,
        (extract(epoch from tokens.expires_at - headroom.now()) * 1000000)::bigint as expires_in_us
    from headroom.tokens as tokens
    where tokens.revoked_at is null and (tokens.expires_at is null or tokens.expires_at > headroom.now())
        -- An end that the table's constraint does not allow: nobody can say until when such a token is good.
        and headroom.is_instant(tokens.expires_at)
)
select ever.was_created, live.id, live.name, live.scopes, live.digest, live.expires_in_us, ever.out_of_range
from (
    select
        exists (select from headroom.tokens) as was_created,
        (select count(*) from headroom.tokens as tokens where not headroom.is_instant(tokens.expires_at)) as out_of_range
) as ever
left join live on true
order by live.id;
