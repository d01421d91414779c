-- Returns whether p_messages fit into a snapshot's allowances. PostgreSQL inlines the function.
create or replace function headroom.snapshot_fits(p_snapshot headroom.usage_snapshot, p_messages integer)
    returns boolean
    language sql immutable parallel safe
    return headroom.fits(p_messages, (p_snapshot).used, (p_snapshot).held, (p_snapshot)."limit")
        and headroom.fits(
            p_messages, (p_snapshot).window_used, (p_snapshot).window_held, (p_snapshot).window_limit
        );
