-- Checks all rows of the divided tables, once everybody has moved. It locks out nothing but changes of the tables'
-- columns. Raises check_violation if a row is in a wrong bucket.
create or replace function headroom.end_division() returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_table text;
begin
    foreach v_table in array headroom.divided_tables() loop
        execute format('alter table %s validate constraint bucket_is_of_the_user', v_table);
    end loop;
end
$$;
