-- Returns the limit of a usage row without the messages that balances have left: the plan's allowance, and what was
-- granted in the period or taken from balances. All parameters are columns of the row.
create or replace function headroom.plain_limit(
    p_count integer, p_held integer, p_limit integer, p_extra integer, p_usable_count integer
) returns integer
    language sql immutable parallel safe
    return p_limit - coalesce(p_extra, 0)
        + headroom.drawn_messages(p_count, p_held, p_limit, p_extra, p_usable_count);
