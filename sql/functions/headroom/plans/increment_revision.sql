-- Trigger function: makes the copies of plans in usage rows outdated, or the words that instances have read.
create or replace function headroom.increment_revision() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    update headroom.plan_revision
    set revision = revision + (tg_table_name = 'plans')::integer,
        words_revision = words_revision + (tg_table_name = 'words')::integer;
    return null;
end
$$;
