-- Raises HR012, because users may have moved to other buckets since the caller has read headroom.bucket_map.
create or replace function headroom.raise_outdated_buckets() returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception 'the division of users into buckets has changed' using errcode = 'HR012';
end
$$;
