-- Changes to which bucket each user belongs, for headroom.bucket_of and for the service. The caller has stopped all
-- counting (headroom.await_division).
create or replace function headroom.write_bucket_map(p_buckets smallint[], p_moved integer) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    update headroom.bucket_map set buckets = p_buckets, moved = p_moved;
    update headroom.plan_revision set buckets_revision = buckets_revision + 1;
    perform headroom.define_bucket_of();
    -- It is recorded as `headroom migrate` does (read_installed_objects.sql), so that the function does not count as
    -- altered.
    if to_regclass('headroom.installed_objects') is not null then
        update headroom.installed_objects
        set facts = facts || jsonb_build_object(
            'definition', current_setting('server_version_num')::integer / 10000 || ':' || encode(
                sha256(convert_to(pg_get_functiondef('headroom.bucket_of(uuid)'::regprocedure), 'UTF8')), 'hex'
            )
        )
        where object = 'function headroom.bucket_of(uuid)';
    end if;
end
$$;
