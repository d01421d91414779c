-- Returns the bucket of a user's rows: the part of a distributed database that contains them, or 0 on one machine.
-- PostgreSQL inlines the function, so the planner uses a constant.
create or replace function headroom.bucket_of(p_user_id uuid) returns smallint
    language sql immutable parallel safe
    return 0::smallint;
-- This belongs to the same transaction, because a database that has been divided has another body.
do $$
begin
    perform headroom.define_bucket_of();
end
$$;
