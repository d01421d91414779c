-- Writes the results of attempts to deliver notifications. p_attempts: the number of attempts before; a notification
-- that was replayed meanwhile has another number, and is left alone. p_problems: null is delivered. p_delays_ms: the
-- time until the next attempt; if it is null, there is none, and the notification has failed.
create or replace function headroom.write_attempts(
    p_ids uuid[], p_attempts integer[], p_problems text[], p_delays_ms bigint[]
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    update headroom.notifications as notifications
    set attempts = notifications.attempts + 1,
        problem = attempt.problem,
        status = case
            when attempt.problem is null then 'd'
            when attempt.delay_ms is null then 'f'
            else 'p'
        end::"char",
        delivered_at = case when attempt.problem is null then headroom.now() end,
        next_attempt_at = headroom.now() + coalesce(attempt.delay_ms, 0) * interval '1 millisecond'
    from unnest(p_ids, p_attempts, p_problems, p_delays_ms) as attempt (id, attempts, problem, delay_ms)
    where notifications.id = attempt.id and notifications.attempts = attempt.attempts and notifications.status = 'p';
end
$$;
