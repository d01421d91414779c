-- The user on whose behalf PostgREST or Supabase runs this statement, from the claims that they set for each request (one
-- setting since PostgREST 9, before that one for each claim); null without one, or where its
-- subject is no uuid. auth.uid() reads the same settings and is not called: another role may own the schema auth.
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

-- End users see their own rows. As a subquery the function is called once for a statement, not for each row. An existing
-- policy already calls it, and may have more roles by now.
do $$
begin
    if not exists (
        select from pg_policy where polrelid = 'public.message_usage'::regclass and polname = 'headroom_user'
    ) then
        create policy headroom_user on public.message_usage for select to headroom_user
            using (user_id = (select headroom.requesting_user()));
    end if;
end
$$;
