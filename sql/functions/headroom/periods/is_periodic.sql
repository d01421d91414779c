-- Returns whether a plan of this cycle has one period after another. The only period of other plans never resets.
create or replace function headroom.is_periodic(p_cycle text) returns boolean
    language sql immutable parallel safe
    return p_cycle in ('monthly', 'weekly', 'daily');
