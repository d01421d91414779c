-- Returns the tables that Citus distributes by their column bucket: the tables of users, and the lanes' receipts. A
-- table to which foreign keys lead comes before those that have the keys.
create or replace function headroom.distributed_tables() returns text[]
    language sql immutable
    return headroom.divided_tables() || array['headroom.spent_trials', 'headroom.lane_receipts'];
