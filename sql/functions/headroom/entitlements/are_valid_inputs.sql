-- Returns whether an entitlement can be derived from values of these rows. The check constraints allow no others, but
-- may have been removed. Null is valid. p_earliest, p_latest: the earliest and the latest of all instants. p_least: the
-- least of all numbers. PostgreSQL inlines the function.
create or replace function headroom.are_valid_inputs(
    p_earliest timestamptz, p_latest timestamptz, p_anchor_day integer, p_least bigint, p_greatest_percent integer,
    p_cycle text, p_trial_days integer
) returns boolean
    language sql immutable
    return (
        p_earliest < '2000-01-01T00:00:00Z' or p_latest >= '10000-01-01T00:00:00Z'
        or p_anchor_day not between 1 and 31 or p_least < 0 or p_greatest_percent > 100
        or p_cycle = 'trial' and coalesce(p_trial_days, 0) not between 1 and 3650
    ) is not true;
