-- Deletes at most p_limit keys older than p_keep, and returns their number. p_keep is at least 7 days. An expired hold
-- stays until it has given back what it took from balances (headroom.detach_balances).
create or replace function headroom.prune_keys(p_keep interval default '7 days', p_limit integer default 1000)
    returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_before constant timestamptz := headroom.now() - p_keep;
    v_bucket smallint;
    v_deleted bigint;
    v_count bigint := 0;
begin
    if p_keep is null or p_keep < interval '7 days' then
        raise exception 'keys are kept for at least 7 days'
            using errcode = 'invalid_parameter_value';
    end if;
    if not headroom.is_distributed() then
        delete from headroom.message_keys as keys
        where keys.ctid = any(array(
            select old.ctid from headroom.message_keys as old
            where old.created_at < v_before and (old.status <> 'h' or old.parts is null or not old.parts ? 'charges')
            limit p_limit
            for update skip locked
        ));
        get diagnostics v_count = row_count;
        return v_count;
    end if;
    -- A ctid has a meaning in one bucket only.
    for v_bucket in select distinct unnest(map.buckets) from headroom.bucket_map as map order by 1 loop
        delete from headroom.message_keys as keys
        where keys.bucket = v_bucket and keys.ctid = any(array(
            select old.ctid from headroom.message_keys as old
            where old.bucket = v_bucket and old.created_at < v_before
                and (old.status <> 'h' or old.parts is null or not old.parts ? 'charges')
            limit p_limit - v_count
            for update skip locked
        ));
        get diagnostics v_deleted = row_count;
        v_count := v_count + v_deleted;
        exit when v_count >= p_limit;
    end loop;
    return v_count;
end
$$;
