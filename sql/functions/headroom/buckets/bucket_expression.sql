-- Returns the body of headroom.bucket_of for a row of headroom.bucket_map.
create or replace function headroom.bucket_expression(p_buckets smallint[], p_moved integer) returns text
    language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket constant text := format(
        '(%L::smallint[])[1 + (uuid_hash_extended(p_user_id, 0) & %s)]', p_buckets, cardinality(p_buckets) - 1
    );
begin
    return case
        when p_buckets = '{0}' then '0::smallint'
        when p_moved = 4096 then v_bucket
        else format(
            'case when (uuid_hash_extended(p_user_id, 0) >> 52) & 4095 < %s then %s else 0::smallint end',
            p_moved, v_bucket
        )
    end;
end
$$;
