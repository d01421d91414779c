-- Deletes at most p_limit keys older than p_keep, and returns how many. p_keep is at least 7 days.
create or replace function headroom.prune_keys(p_keep interval default '7 days', p_limit integer default 1000)
    returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_count bigint;
begin
    if p_keep is null or p_keep < interval '7 days' then
        raise exception 'keys are kept for at least 7 days'
            using errcode = 'invalid_parameter_value';
    end if;
    with old_keys as materialized (
        select keys.ctid as row_id
        from headroom.message_keys as keys
        where keys.created_at < headroom.now() - p_keep
        limit p_limit
        for update skip locked
    )
    delete from headroom.message_keys as keys
    where keys.ctid = any(array(select row_id from old_keys));
    get diagnostics v_count = row_count;
    return v_count;
end
$$;
grant execute on function headroom.prune_keys(interval, integer) to headroom_operator;
