-- Raises the error about a new user whose usage row was not inserted: serialization_failure if another session has
-- inserted it, otherwise HR006 or HR011 (headroom.raise_discarded_row).
create or replace function headroom.raise_uncounted_row(p_bucket smallint, p_user_id uuid) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from public.message_usage as usage where usage.bucket = p_bucket and usage.user_id = p_user_id
    ) then
        raise exception 'another session has inserted the usage row of user %', p_user_id
            using errcode = 'serialization_failure', hint = 'Try again.';
    end if;
    perform headroom.raise_discarded_row('public.message_usage', p_user_id);
end
$$;
