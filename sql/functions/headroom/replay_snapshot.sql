-- Returns the answer to a repeated key: p_snapshot with the period and the numbers of the first answer.
create or replace function headroom.replay_snapshot(
    p_snapshot headroom.usage_snapshot, p_user_id uuid, p_billing_period text, p_used integer, p_held integer,
    p_limit integer
) returns headroom.usage_snapshot
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_snapshot headroom.usage_snapshot := p_snapshot;
    v_row public.message_usage;
begin
    if p_billing_period <> v_snapshot.billing_period then
        -- The first answer was about an earlier period, or another plan.
        v_row := headroom.lock_usage(p_user_id, p_billing_period);
        v_snapshot.billing_period := p_billing_period;
        v_snapshot.plan := coalesce(v_row.plan, v_snapshot.plan);
        v_snapshot.state := coalesce(v_row.state, v_snapshot.state);
        v_snapshot.started_at := coalesce(v_row.started_at, v_snapshot.started_at);
        v_snapshot.resets_at := v_row.resets_at;
        v_snapshot.expires_at := v_row.expires_at;
        v_snapshot.renews := v_row.renews;
    end if;
    v_snapshot.denial_reason := null;
    v_snapshot.used := p_used;
    v_snapshot.held := p_held;
    v_snapshot."limit" := p_limit;
    v_snapshot.is_replay := true;
    return v_snapshot;
end
$$;
