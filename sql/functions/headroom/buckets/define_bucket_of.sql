-- Gives headroom.bucket_of the body that follows from headroom.bucket_map. In a database with one bucket, it stays as
-- its file defines it. The map's numbers are in the body, because a function that reads a table is not inlined.
create or replace function headroom.define_bucket_of() returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_map headroom.bucket_map;
    v_bucket text;
begin
    select * into v_map from headroom.bucket_map;
    if v_map.buckets = '{0}' then
        return;
    end if;
    v_bucket := format(
        '(%L::smallint[])[1 + (uuid_hash_extended(p_user_id, 0) & %s)]', v_map.buckets, cardinality(v_map.buckets) - 1
    );
    execute format(
        'create or replace '
        'function headroom.bucket_of(p_user_id uuid) returns smallint language sql immutable parallel safe return %s',
        case
            when v_map.moved = 4096 then v_bucket
            else format(
                'case when headroom.part_of(p_user_id) < %s then %s else 0::smallint end', v_map.moved, v_bucket
            )
        end
    );
end
$$;
