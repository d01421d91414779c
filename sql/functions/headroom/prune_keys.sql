-- Forgets at most p_limit keys that are older than p_keep, and returns how many. At least 7 days are kept.
create or replace function headroom.prune_keys(p_keep interval default '7 days', p_limit integer default 1000) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_count bigint;
begin
    if p_keep is null or p_keep < interval '7 days' then
        raise exception 'keys are promised to be remembered for at least 7 days'
            using errcode = 'invalid_parameter_value';
    end if;
    with old as materialized (
        select keys.ctid as place
        from headroom.message_keys as keys
        where keys.created_at < headroom.now() - p_keep
        limit p_limit
        for update skip locked
    )
    delete from headroom.message_keys as keys
    where keys.ctid = any (array(select place from old));
    get diagnostics v_count = row_count;
    return v_count;
end
$$;
grant execute on function headroom.prune_keys(interval, integer) to headroom_operator;
alter function headroom.prune_keys(interval, integer) owner to headroom_service;
