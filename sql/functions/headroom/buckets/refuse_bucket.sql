-- Trigger function: refuses a row whose bucket is not that of its user.
create or replace function headroom.refuse_bucket() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if new.bucket = headroom.bucket_of(new.user_id) then return null; end if;
    raise exception 'a row of % is in bucket %, which is not the bucket of its user',
        headroom.table_of_shard(tg_table_name), new.bucket
        using errcode = 'check_violation', constraint = 'bucket_is_of_the_user', table = tg_table_name,
            hint = 'Set bucket to headroom.bucket_of(user_id).';
end
$$;
