-- Trigger function: refuses a row with a value out of range. It takes the place of check constraints, which each batch
-- would parse.
create or replace function headroom.refuse_values() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform headroom.raise_invalid_row(
        tg_table_schema || '.' || headroom.table_of_shard(tg_table_name), to_jsonb(new), 'check_violation'
    );
    return null;
end
$$;
