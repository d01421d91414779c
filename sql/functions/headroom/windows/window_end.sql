-- Returns when a window ends under a plan whose windows last p_window_seconds: a plan with shorter windows ends it
-- earlier. A null p_window_seconds is a plan without windows, which leaves the end as it is. PostgreSQL inlines the
-- function.
--
-- p_opened_at, p_ends_at: columns of the usage row. The end is computed in UTC, which makes the expression immutable:
-- Citus refuses others about columns in an UPDATE.
create or replace function headroom.window_end(
    p_opened_at timestamptz, p_ends_at timestamptz, p_window_seconds integer
) returns timestamptz
    language sql immutable parallel safe
    return case
        -- The order matters: an instant out of range must not be computed with.
        when p_window_seconds is not null and headroom.is_instant(p_opened_at)
            then least(
                p_ends_at,
                (p_opened_at at time zone 'UTC' + make_interval(secs => p_window_seconds)) at time zone 'UTC'
            )
        else p_ends_at
    end;
