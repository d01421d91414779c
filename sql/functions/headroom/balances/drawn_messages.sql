-- Returns how many messages of a usage row were taken from balances since these were attached to it
-- (headroom.attach_balances): what is counted and held beyond the limit without them. A row whose count was beyond that
-- from the start, with the usable_count 0, is only counted in together with its balances. All parameters are columns of
-- the row.
create or replace function headroom.drawn_messages(
    p_count integer, p_held integer, p_limit integer, p_extra integer, p_usable_count integer
) returns integer
    language sql immutable parallel safe
    return case
        when p_extra is null or p_limit is null or p_usable_count = 0 then 0
        else greatest(least(p_count::bigint + p_held - p_limit + p_extra, p_extra), 0)::integer
    end;
