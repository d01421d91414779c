-- Trigger function: refuses a row whose bucket is not that of its user. A trigger for each statement looks at the rows
-- of its transition table.
create or replace function headroom.refuse_bucket() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket smallint;
begin
    if tg_level = 'STATEMENT' then
        select inserted.bucket into v_bucket from inserted
        where inserted.bucket <> headroom.bucket_of(inserted.user_id) limit 1;
    elsif new.bucket <> headroom.bucket_of(new.user_id) then
        v_bucket := new.bucket;
    end if;
    if v_bucket is null then return null; end if;
    raise exception 'a row of % is in bucket %, which is not the bucket of its user',
        headroom.table_of_shard(tg_table_name), v_bucket
        using errcode = 'check_violation', constraint = 'bucket_is_of_the_user', table = tg_table_name,
            hint = 'Set bucket to headroom.bucket_of(user_id).';
end
$$;
