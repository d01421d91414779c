-- Stores the namespace of users' names when the first service with the setting user-namespace starts. Raises
-- object_not_in_prerequisite_state if another one is stored.
create or replace function headroom.claim_user_namespace(p_id uuid) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_id uuid;
begin
    insert into headroom.user_namespace (id) values (p_id) on conflict (only_row) do nothing;
    select namespace.id into v_id from headroom.user_namespace as namespace;
    if v_id is distinct from p_id then
        raise exception 'user-namespace is %, but the users of this database are named in the namespace %', p_id, v_id
            using errcode = 'object_not_in_prerequisite_state',
                hint = 'In another namespace every name stands for a new user. Start with the database''s namespace.';
    end if;
end
$$;
