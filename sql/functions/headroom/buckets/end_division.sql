-- Checks all rows of the divided tables after all users have moved. It blocks no reads and no writes. Raises
-- check_violation if a row is in a wrong bucket, which requires that somebody disabled a trigger bucket_is_of_the_user.
create or replace function headroom.end_division() returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_table text;
    v_rows bigint;
begin
    foreach v_table in array headroom.divided_tables() loop
        execute format('select count(*) from %s where bucket <> headroom.bucket_of(user_id)', v_table) into v_rows;
        if v_rows > 0 then
            raise exception '% rows of % are not in the buckets of their users', v_rows, v_table
                using errcode = 'check_violation',
                    hint = format('update %s set bucket = headroom.bucket_of(user_id) where ', v_table)
                        || 'bucket <> headroom.bucket_of(user_id), then distribute again.';
        end if;
    end loop;
end
$$;
