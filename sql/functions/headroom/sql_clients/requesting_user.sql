-- Returns the user for whom PostgREST or Supabase executes this statement, from the claims of the request's token: one
-- setting since PostgREST 9, one per claim before. Null without a token, or if its subject is no UUID. auth.uid() reads
-- the same settings, but another role may own the schema auth.
create or replace function headroom.requesting_user() returns uuid
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_subject constant text := coalesce(
        nullif(current_setting('request.jwt.claim.sub', true), ''),
        nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'
    );
begin
    return case
        when v_subject ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then v_subject::uuid
    end;
end
$$;
grant execute on function headroom.requesting_user() to headroom_user;
