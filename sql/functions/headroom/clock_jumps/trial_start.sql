-- Returns when a subscription began: p_started_at, or p_at if a message that was counted while the clock was ahead
-- began it (headroom.correct_clock_jump). Without such a usage row, an operator has set that start. PostgreSQL inlines
-- the function.
create or replace function headroom.trial_start(
    p_user_id uuid, p_transaction_id text, p_plan text, p_started_at timestamptz, p_at timestamptz
) returns timestamptz
    language sql stable
    return case
        when p_transaction_id = 'first message' and p_started_at > p_at + interval '1 hour'
            and headroom.is_dated_ahead(p_user_id, p_plan, p_at)
            then p_at
        else p_started_at
    end;
