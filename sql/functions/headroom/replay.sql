-- The answer to a repeated key: the first outcome's numbers, or a conflict where verb or number differ.
create or replace function headroom.replay(
    p_standing headroom.standing, p_key headroom.message_keys, p_verb text, p_messages integer
) returns headroom.standing
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_standing headroom.standing := p_standing;
    v_row public.message_usage;
begin
    if (p_verb = 'consume') <> ((p_key).verb = 'c') or p_messages <> (p_key).messages then
        v_standing.verdict := 'conflict';
        return v_standing;
    end if;
    if (p_key).billing_period <> v_standing.billing_period then
        -- From before the month's end, or from before the plan changed: it is answered with that period.
        select * into v_row from public.message_usage as usage
        where usage.user_id = (p_key).user_id and usage.billing_period = (p_key).billing_period;
        perform headroom.check_usage(v_row);
        v_standing.billing_period := (p_key).billing_period;
        v_standing.plan := coalesce(v_row.plan, v_standing.plan);
        v_standing.state := coalesce(v_row.state, v_standing.state);
        v_standing.started_at := coalesce(v_row.started_at, v_standing.started_at);
        v_standing.resets_at := v_row.resets_at;
        v_standing.expires_at := v_row.expires_at;
    end if;
    v_standing.verdict := case p_verb when 'reserve' then 'held' else 'allowed' end;
    v_standing.lapse := null;
    v_standing.used := (p_key).used;
    v_standing.held := (p_key).held;
    v_standing."limit" := (p_key)."limit";
    if p_verb = 'commit' then
        v_standing.used := (p_key).committed_used;
        v_standing.held := (p_key).committed_held;
        v_standing."limit" := (p_key).committed_limit;
    end if;
    v_standing.is_replay := true;
    return v_standing;
end
$$;
revoke all on function headroom.replay(headroom.standing, headroom.message_keys, text, integer) from public;
grant execute on function headroom.replay(headroom.standing, headroom.message_keys, text, integer) to headroom_service;
