-- A user's standing from the terms, and from the usage row's count and limit, which are null where there is no row. "held" in
-- the row is exact until usable_until, which no hold outlives; after it, holds have to be looked up.
create or replace function headroom.standing_from(
    p_terms headroom.terms, p_count integer, p_held bigint, p_limit integer, p_at timestamptz
) returns headroom.standing
    language sql immutable parallel safe
    return row(
        (p_terms).plan, (p_terms).state, (p_terms).lapse, (p_terms).billing_period,
        least(coalesce(p_count, 0)::bigint + coalesce((p_terms).spent_messages, 0), 2147483647)::integer,
        least(coalesce(p_held, 0), 2147483647)::integer, p_limit,
        (p_terms).started_at, (p_terms).resets_at, (p_terms).expires_at, (p_terms).previous_plan,
        p_at, (p_terms).plan_revision, 'ok', 0, false
    )::headroom.standing;
