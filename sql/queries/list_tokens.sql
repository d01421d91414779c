-- Every token there ever was, without its digest, newest first.
select
    tokens.id, tokens.name, pg_catalog.array_to_string(tokens.scopes, ' ') as scopes, tokens.created_at,
    tokens.created_by, tokens.expires_at, tokens.revoked_at, tokens.revoked_by, tokens.last_used_at,
    case
        when tokens.revoked_at is not null then 'revoked'
        when tokens.expires_at <= headroom.now() then 'expired'
        else 'live'
    end as state
from headroom.tokens as tokens
order by tokens.id desc;
