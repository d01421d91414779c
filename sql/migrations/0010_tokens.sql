-- Tokens: who may ask the service, and what.
--
-- A row holds the SHA-256 digest of a token, never the token: that is 32 random bytes, so nobody finds it by guessing,
-- and a digest that hashes quickly is enough. Rows stay when a token is revoked or has expired: they say who could ask
-- when, and that there was a token once, after which nobody asks without one, also when the last one is revoked.
--
-- Whoever writes a row does so as himself, by create_token and revoke_token or by hand; a trigger notes who and when.
-- The service reads, and writes nothing but when a token was last used.

-- Tokens --------------------------------------------------------------------------------------------------------------

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
    constraint revoked_by_somebody check ((revoked_at is null) = (revoked_by is null))
);
comment on table headroom.tokens is
    'Tokens by their digest; headroom token create makes one. Rows stay, so that it is known who could ask when.';
comment on column headroom.tokens.name is
    'Whom it is for. Several live tokens may share a name: that is how one is replaced by another.';
comment on column headroom.tokens.last_used_at is 'To the minute, connections that are open count as use.';

-- Notes who creates and who revokes, whoever writes the row and however, and keeps what was noted.
create function headroom.keep_token_record() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        new.created_at := headroom.now();
        new.created_by := headroom.actor();
        new.revoked_at := null;
        new.revoked_by := null;
        new.last_used_at := null;
        if new.expires_at <= new.created_at then
            raise exception 'a token must expire later than now' using errcode = 'invalid_parameter_value';
        end if;
        -- One at a time, or two could both find room for the last one.
        perform pg_advisory_xact_lock(hashtextextended('headroom.tokens', 0));
        if (
            select count(*) from headroom.tokens
            where revoked_at is null and (expires_at is null or expires_at > headroom.now())
        ) >= 1000 then
            -- Each is compared with whatever is presented.
            raise exception 'there are 1000 live tokens, and no room for more'
                using errcode = 'program_limit_exceeded', hint = 'Revoke some: headroom token list, headroom token revoke';
        end if;
        return new;
    end if;
    if old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at then
        raise exception 'a revoked token stays revoked; create another one'
            using errcode = 'object_not_in_prerequisite_state';
    elsif old.revoked_at is null and new.revoked_at is not null then
        new.revoked_at := headroom.now();
        new.revoked_by := headroom.actor();
    else
        new.revoked_by := old.revoked_by;
    end if;
    new.created_at := old.created_at;
    new.created_by := old.created_by;
    return new;
end
$$;

-- Tells the instances that listen; the others look every two seconds.
create function headroom.tell_tokens_changed() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_notify('headroom_tokens', '');
    return null;
end
$$;

-- Use is written once a minute and concerns nobody: its column is in neither list.
create trigger keep_token_record
    before insert or update of name, scopes, digest, created_at, created_by, expires_at, revoked_at, revoked_by
    on headroom.tokens for each row execute function headroom.keep_token_record();
create trigger tell_tokens_changed
    after insert or delete or update of name, scopes, digest, expires_at, revoked_at
    on headroom.tokens for each statement execute function headroom.tell_tokens_changed();

-- Makes a token known by its digest; the token itself never comes here. Null expires never.
create function headroom.create_token(
    p_name text, p_scopes text[], p_digest bytea, p_expires_at timestamptz default null
) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_id bigint;
begin
    if p_name is null or p_scopes is null or p_digest is null then
        raise exception 'name, scopes and digest must be given' using errcode = 'null_value_not_allowed';
    end if;
    insert into headroom.tokens (name, scopes, digest, expires_at)
    values (p_name, p_scopes, p_digest, p_expires_at)
    returning id into v_id;
    return v_id;
end
$$;

-- Ends a token, and with it the connections that came with it; again changes nothing. Returns its name.
create function headroom.revoke_token(p_id bigint) returns text
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_name text;
begin
    update headroom.tokens set revoked_at = headroom.now() where id = p_id and revoked_at is null;
    select name into v_name from headroom.tokens where id = p_id;
    if not found then
        raise exception 'there is no such token' using errcode = 'no_data_found';
    end if;
    return v_name;
end
$$;

-- Rights --------------------------------------------------------------------------------------------------------------

-- The trigger's functions run as whoever writes the row, and belong to the schema's owner: headroom_service, which owns
-- all that is SECURITY DEFINER, is not to change what notes who made a token.
revoke all on headroom.tokens from public;
revoke all on type headroom.tokens from public;
revoke all on function
    headroom.keep_token_record(), headroom.tell_tokens_changed(),
    headroom.create_token(text, text[], bytea, timestamptz), headroom.revoke_token(bigint)
from public;
grant select, update (last_used_at) on headroom.tokens to headroom_service;
-- What they may not write, the trigger does.
grant select, insert (name, scopes, digest, expires_at), update (revoked_at) on headroom.tokens to headroom_operator;
grant execute on function
    headroom.create_token(text, text[], bytea, timestamptz), headroom.revoke_token(bigint), headroom.actor()
to headroom_operator;
