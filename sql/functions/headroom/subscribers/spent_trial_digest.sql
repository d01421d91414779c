-- Returns the digest under which the spent trial of a forgotten user is stored.
create or replace function headroom.spent_trial_digest(p_user_id uuid) returns bytea
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return headroom.keyed_digest(p_user_id, secrets.inner_key, secrets.outer_key)
    from headroom.secrets where secrets.name = 'spent trials';
end
$$;
