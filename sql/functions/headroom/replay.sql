-- The answer to a repeated key: the user's standing now, with the verdict, but with the period and the numbers of the first
-- time.
create or replace function headroom.replay(
    p_standing headroom.standing, p_user_id uuid, p_billing_period text, p_used integer, p_held integer, p_limit integer
) returns headroom.standing
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_standing headroom.standing := p_standing;
    v_row public.message_usage;
begin
    if p_billing_period <> v_standing.billing_period then
        -- From before the month's end, or from before the plan changed: it is answered with that period.
        v_row := headroom.lock_usage(p_user_id, p_billing_period);
        v_standing.billing_period := p_billing_period;
        v_standing.plan := coalesce(v_row.plan, v_standing.plan);
        v_standing.state := coalesce(v_row.state, v_standing.state);
        v_standing.started_at := coalesce(v_row.started_at, v_standing.started_at);
        v_standing.resets_at := v_row.resets_at;
        v_standing.expires_at := v_row.expires_at;
    end if;
    v_standing.lapse := null;
    v_standing.used := p_used;
    v_standing.held := p_held;
    v_standing."limit" := p_limit;
    v_standing.is_replay := true;
    return v_standing;
end
$$;
