-- Reads the tokens that are not revoked or expired, valid ones first, oldest first. There is one row of nulls if there
-- is no token. was_created: whether any token was ever created. problem: why the token is invalid; its other columns
-- but id are then unspecified. expires_in_us: microseconds from now by the database's clock; null is never.
--
-- A trigger allows 1,000 live tokens. The limit bounds the answer if the trigger was disabled.
with live_tokens as (
    select tokens.id, tokens.name, tokens.scopes, tokens.digest,
        case
            when headroom.is_instant(tokens.expires_at)
                then (extract(epoch from tokens.expires_at - headroom.now()) * 1000000)::bigint
        end as expires_in_us,
        coalesce(
            headroom.token_problem(tokens.name, tokens.scopes, tokens.digest, tokens.expires_at),
            -- The digest does not decide between the two tokens.
            case
                when row_number() over (partition by tokens.digest order by tokens.id) > 1
                    then 'an older token has the same digest'
            end
        ) as problem
    from headroom.tokens as tokens
    where tokens.revoked_at is null
        and (
            tokens.expires_at is null or tokens.expires_at > headroom.now()
            or not headroom.is_instant(tokens.expires_at)
        )
),
listed as (
    select live_tokens.* from live_tokens order by live_tokens.problem is not null, live_tokens.id limit 1100
)
select history.was_created, listed.id, listed.name, listed.scopes, listed.digest, listed.expires_in_us, listed.problem
from (select count(*) > 0 as was_created from (select from headroom.tokens limit 1) as tokens) as history
left join listed on true
order by listed.problem is not null, listed.id;
