-- Trigger function: records when and by which role a token is created and revoked, and keeps an UPDATE from changing
-- these columns. It refuses a token that has expired already or is one too many, and refuses to make a revoked one
-- valid again.
create or replace function headroom.check_and_stamp_token() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        new.created_at := headroom.now();
        new.created_by := headroom.actor();
        new.revoked_at := null;
        new.revoked_by := null;
        new.last_used_at := null;
        if not headroom.is_instant(new.expires_at) then
            raise exception 'a token must expire in the years 2000 to 9999'
                using errcode = 'invalid_parameter_value', hint = 'Leave expires_at out for never.';
        elsif new.expires_at <= new.created_at then
            raise exception 'a token must expire later than now' using errcode = 'invalid_parameter_value';
        end if;
        -- One session at a time may pass, or two sessions could both add the last allowed token.
        perform from headroom.token_lock for update;
        if (
            select count(*) from headroom.tokens
            where revoked_at is null and (expires_at is null or expires_at > headroom.now())
        ) >= 1000 then
            -- The service compares each presented token with all of them.
            raise exception 'there are 1000 live tokens, and no room for more'
                using errcode = 'program_limit_exceeded',
                    hint = 'Revoke some: headroom token list, headroom token revoke';
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
