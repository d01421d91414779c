-- Returns whether p_messages fit beside the used and held messages under a limit; null is unlimited. PostgreSQL inlines
-- the function.
create or replace function headroom.fits(
    p_messages bigint, p_used integer, p_held integer, p_limit integer
) returns boolean
    language sql immutable parallel safe
    return coalesce(p_messages + p_used + p_held <= p_limit, true);
