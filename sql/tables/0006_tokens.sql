-- Tokens: who may ask the service, and what.
--
-- A row holds the SHA-256 digest of a token, never the token: that is 32 random bytes, so nobody finds it by guessing,
-- and a digest that hashes quickly is enough. Rows stay when a token is revoked or has expired: they say who could ask
-- when, and that there was a token once, after which nobody asks without one, also when the last one is revoked.
--
-- Whoever writes a row does so as himself, by create_token and revoke_token or by hand; a trigger notes who and when.
-- The service reads, and writes nothing but when a token was last used.

create table headroom.tokens (
    id bigint generated always as identity primary key,
    name text not null,
    scopes text[] not null,
    digest bytea not null,
    created_at timestamptz not null,
    created_by text not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    revoked_by text,
    last_used_at timestamptz,
    -- What may stand in a line of INFO and in the audit log as it is. Client libraries send `default` as the name of
    -- whoever was given a password only.
    constraint name_is_plain check (name ~ '^[a-z0-9_.-]{1,64}$' and name <> 'default'),
    constraint scopes_are_known check (
        pg_catalog.cardinality(scopes) between 1 and 3 and scopes <@ array['chat', 'dashboard', 'operator']
    ),
    constraint digest_is_sha256 check (pg_catalog.octet_length(digest) = 32),
    constraint digest_is_new unique (digest),
    constraint expires_later check (expires_at > created_at),
    constraint revoked_by_somebody check ((revoked_at is null) = (revoked_by is null)),
    -- Not the domain headroom.instant, which is checked before the trigger sets or refuses a value.
    constraint instants_are_in_the_years_2000_to_9999 check (
        least(created_at, expires_at, revoked_at, last_used_at) >= '2000-01-01T00:00:00Z'
        and greatest(created_at, expires_at, revoked_at, last_used_at) < '10000-01-01T00:00:00Z'
    )
);
comment on table headroom.tokens is
    'Tokens by their digest; headroom token create makes one. Rows stay, so that it is known who could ask when.';
comment on column headroom.tokens.name is
    'Whom it is for. Several live tokens may share a name: that is how one is replaced by another.';
comment on column headroom.tokens.last_used_at is 'To the minute, connections that are open count as use.';
grant select, update (last_used_at) on headroom.tokens to headroom_service;
-- What operators may not write, the trigger does.
grant select, insert (name, scopes, digest, expires_at), update (revoked_at) on headroom.tokens to headroom_operator;
