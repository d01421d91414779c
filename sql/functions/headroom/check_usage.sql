-- Raises HR006 where a usage row holds a value that the check constraints of message_usage do not allow: nothing is
-- computed with it. A null row passes.
create or replace function headroom.check_usage(p_row public.message_usage) returns void
    language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    v_count constant text := case
        when p_row.message_count < 0 then 'message_count'
        when p_row.held < 0 then 'held'
        when p_row.released < 0 then 'released'
        when p_row.granted < 0 then 'granted'
        when p_row."limit" < 0 then 'limit'
        when p_row.plan_limit < 0 then 'plan_limit'
    end;
    v_instant constant text := case
        when not headroom.is_instant(p_row.updated_at) then 'updated_at'
        when not headroom.is_instant(p_row.started_at) then 'started_at'
        when not headroom.is_instant(p_row.resets_at) then 'resets_at'
        when not headroom.is_instant(p_row.expires_at) then 'expires_at'
    end;
begin
    if v_count is not null then
        perform headroom.refuse_value(
            'message_usage', v_count, format('coalesce(%I, 0) >= 0', v_count), to_jsonb(p_row) ->> v_count
        );
    elsif v_instant is not null then
        perform headroom.refuse_value(
            'message_usage', v_instant, format('headroom.is_instant(%I)', v_instant), to_jsonb(p_row) ->> v_instant
        );
    end if;
end
$$;
revoke all on function headroom.check_usage(public.message_usage) from public;
grant execute on function headroom.check_usage(public.message_usage) to headroom_service;
