-- Trigger function: makes the copies of plans in usage rows outdated, or the words that instances have read.
create or replace function headroom.increment_revision() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_table constant text := headroom.table_of_shard(tg_table_name);
begin
    if headroom.is_first_copy() then
        update headroom.plan_revision
        set revision = revision + (v_table in ('plans', 'plan_limits'))::integer,
            words_revision = words_revision + (v_table = 'words')::integer;
    end if;
    return null;
end
$$;
