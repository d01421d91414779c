-- The tokens that are not revoked and have not expired, a row each: those with nothing wrong first, oldest first; one
-- row of nulls where there is none. With each row, whether there ever was a token. problem: why it is not to be
-- accepted; the other columns but id may hold anything then. expires_in_us: microseconds from now by the database's
-- clock; null is never.
--
-- A thousand tokens are live at most. The rest of the rows is for a table whose trigger was disabled: whatever is in
-- it, this answer is bounded.
with present as (
    select tokens.id, tokens.name, tokens.scopes, tokens.digest,
        case
            when headroom.is_instant(tokens.expires_at)
                then (extract(epoch from tokens.expires_at - headroom.now()) * 1000000)::bigint
        end as expires_in_us,
        coalesce(
            headroom.token_problem(tokens.name, tokens.scopes, tokens.digest, tokens.expires_at),
            -- Which of the two a caller is could not be told.
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
chosen as (
    select present.* from present order by present.problem is not null, present.id limit 1100
)
select ever.was_created, chosen.id, chosen.name, chosen.scopes, chosen.digest, chosen.expires_in_us, chosen.problem
from (select exists (select from headroom.tokens) as was_created) as ever
left join chosen on true
order by chosen.problem is not null, chosen.id;
