-- Returns the part of a user: a number from 0 to 4095, from the first bits of the user's hash. Users are divided into
-- buckets part by part (headroom.divide_users), with an index on this function.
create or replace function headroom.part_of(p_user_id uuid) returns integer
    language sql immutable parallel safe
    return ((pg_catalog.uuid_hash_extended(p_user_id, 0) >> 52) & 4095)::integer;
