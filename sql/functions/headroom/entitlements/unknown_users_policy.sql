-- Returns what users without a subscription get, from the setting headroom.unknown_users: trial, free or deny. The
-- service sets it for its own connections. For psql and PostgREST, an operator does:
-- alter database … set headroom.unknown_users = 'deny'.
create or replace function headroom.unknown_users_policy() returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_setting constant text := coalesce(nullif(current_setting('headroom.unknown_users', true), ''), 'trial');
begin
    if v_setting not in ('trial', 'free', 'deny') then
        raise exception 'headroom.unknown_users is %, not trial, free or deny', quote_literal(v_setting)
            using errcode = 'invalid_parameter_value';
    end if;
    return v_setting;
end
$$;
