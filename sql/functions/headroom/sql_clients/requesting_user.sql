-- Returns the user for whom PostgREST or Supabase executes this statement, from the claims of the request's token,
-- which are one setting since PostgREST 9, and one per claim before. It is null without a token, or if its subject is
-- neither a UUID nor, with the setting user-namespace, another name of a user. auth.uid() reads the same settings, but
-- another role may own the schema auth.
create or replace function headroom.requesting_user() returns uuid
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_subject constant text := coalesce(
        nullif(current_setting('request.jwt.claim.sub', true), ''),
        nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'
    );
begin
    -- Policies of row level security may call this for each row, and most subjects are UUIDs.
    if v_subject is null then
        return null;
    elsif v_subject ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        return v_subject::uuid;
    end if;
    begin
        return headroom.user_id(v_subject);
    exception
        when invalid_parameter_value then
            return null;
    end;
end
$$;
