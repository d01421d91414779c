-- Returns the bucket of a user's rows: the part of a distributed database that contains them, 0 on one machine. Its
-- body has the numbers of headroom.bucket_map: PostgreSQL inlines the function, so the planner uses a constant.
-- headroom.divide_users rewrites it.
do $$
declare
    v_map headroom.bucket_map;
begin
    select * into v_map from headroom.bucket_map;
    execute format(
        'create or replace function headroom.bucket_of(p_user_id uuid) returns smallint '
        'language sql immutable parallel safe return %s',
        headroom.bucket_expression(v_map.buckets, v_map.moved)
    );
end
$$;
grant execute on function headroom.bucket_of(uuid) to headroom_operator, headroom_dashboard;
