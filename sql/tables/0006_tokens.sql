-- Tokens of the service's clients, with their scopes.
--
-- A row has the SHA-256 digest of a token, never the token. A token is 32 random bytes, so it cannot be guessed, and a
-- fast hash is enough. Revoked and expired tokens stay: they show who had access when, and authentication stays
-- required after the last token was revoked.
--
-- create_token, revoke_token and manual changes write rows with the rights of their caller; a trigger records who and
-- when. The service only writes last_used_at.

-- A row that headroom.check_and_stamp_token locks, so that one session at a time adds a token. Unlike an advisory lock,
-- nobody without rights can hold it.
create table headroom.token_lock (
    only_row boolean primary key default true,
    constraint there_is_one_row check (only_row)
);
insert into headroom.token_lock (only_row) values (true);

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
    -- Characters that INFO and the audit log show as they are. Client libraries send `default` as the name if only a
    -- password is configured.
    constraint name_is_plain check (name ~ '^[a-z0-9_.-]{1,64}$' and name <> 'default'),
    constraint scopes_are_known check (
        pg_catalog.cardinality(scopes) between 1 and 3 and scopes <@ array['chat', 'dashboard', 'operator']
    ),
    constraint digest_is_sha256 check (pg_catalog.octet_length(digest) = 32),
    constraint digest_is_new unique (digest),
    constraint expires_later check (expires_at > created_at),
    constraint revoked_by_somebody check ((revoked_at is null) = (revoked_by is null)),
    -- Not the domain headroom.instant, which would be checked before the trigger sets or refuses a value.
    constraint instants_are_in_the_years_2000_to_9999 check (
        least(created_at, expires_at, revoked_at, last_used_at) >= '2000-01-01T00:00:00Z'
        and greatest(created_at, expires_at, revoked_at, last_used_at) < '10000-01-01T00:00:00Z'
    )
);
comment on table headroom.tokens is
    'Tokens by digest, created by headroom token create. Rows stay after revocation, as a record of access.';
comment on column headroom.tokens.name is
    'The client. Several live tokens may have the same name, so that a client can change to a new token.';
comment on column headroom.tokens.last_used_at is 'To the minute; open connections count as use.';
grant select, update (last_used_at) on headroom.tokens to headroom_service;
-- The trigger writes the other columns.
grant select, insert (name, scopes, digest, expires_at), update (revoked_at) on headroom.tokens to headroom_operator;
