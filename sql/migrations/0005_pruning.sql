-- Old keys are forgotten in the background, in small portions.
--
-- A portion is its own transaction and locks only rows that nobody uses any more, so no message waits for it. Its cost is
-- a deletion per key, about what remembering it took, and vacuum's work on pages that the next keys fill again. The
-- rows' order is that of their age, so the block range index finds the old ones without an index entry per key.

-- Forgets at most p_limit keys that are older than p_keep, and returns how many. At least 7 days are kept.
create function headroom.prune_keys(p_keep interval default '7 days', p_limit integer default 1000) returns bigint
    language plpgsql set search_path = pg_catalog
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

-- The keys come and go at the rate of messages; vacuum follows closely, so that the next keys find the room.
alter table headroom.message_keys set (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2
);
