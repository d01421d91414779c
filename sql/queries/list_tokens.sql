-- Lists all tokens, even revoked and expired ones, without digests, newest first. An invalid instant is null.
select
    tokens.id, tokens.name, pg_catalog.array_to_string(tokens.scopes, ' ') as scopes,
    case when headroom.is_instant(tokens.created_at) then tokens.created_at end as created_at,
    tokens.created_by,
    case when headroom.is_instant(tokens.expires_at) then tokens.expires_at end as expires_at,
    case when headroom.is_instant(tokens.revoked_at) then tokens.revoked_at end as revoked_at,
    tokens.revoked_by,
    case when headroom.is_instant(tokens.last_used_at) then tokens.last_used_at end as last_used_at,
    case
        when tokens.revoked_at is not null then 'revoked'
        when headroom.token_problem(tokens.name, tokens.scopes, tokens.digest, tokens.expires_at) is not null
            then 'invalid'
        when tokens.expires_at <= headroom.now() then 'expired'
        else 'live'
    end as state
from headroom.tokens as tokens
order by tokens.id desc;
