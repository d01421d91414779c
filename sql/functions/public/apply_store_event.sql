-- Applies one event that a store told, once however often it is told: {"outcome", "user", "plan", "state", "access",
-- "reason", "expires", "previous_plan"}. The event is kept in the transaction of its effect. docs/reference.md has the
-- fields, the kinds and the outcomes.
create or replace function public.apply_store_event(p_event jsonb) returns jsonb
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_event headroom.store_events := headroom.read_store_event(p_event);
    v_outcome text;
begin
    perform headroom.check_store_event(v_event);
    if v_event.user_id is null then
        select events.user_id into v_event.user_id from headroom.store_events as events
        where events.original_transaction_id = v_event.original_transaction_id and events.user_id is not null
        order by events.event_at desc, events.source, events.event_id
        limit 1;
    end if;
    if exists (
        select from headroom.store_events as events
        where events.source = v_event.source and events.event_id = v_event.event_id
    ) then
        return headroom.store_event_answer('duplicate', v_event.user_id);
    end if;
    if not headroom.is_store_event_kind(v_event.kind) then
        -- Kept with the user only where the user is known, because who is not can not be forgotten either.
        perform from headroom.subscribers as subscriber where subscriber.user_id = v_event.user_id for key share;
        if not found then
            v_event.user_id := null;
        end if;
        v_outcome := case when headroom.keep_store_event(v_event, 'ignored') then 'ignored' else 'duplicate' end;
        return headroom.store_event_answer(v_outcome, v_event.user_id);
    elsif v_event.user_id is null then
        raise exception 'the user of this transaction is not known' using errcode = 'no_data_found',
            hint = 'Pass ''user'', or send the event again when one that names the user was applied.';
    end if;
    -- A statement of its own: the answer reads what this one writes.
    v_outcome := headroom.apply_read_event(v_event, null);
    return headroom.store_event_answer(v_outcome, v_event.user_id);
end
$$;
revoke all on function public.apply_store_event(jsonb) from public;
grant execute on function public.apply_store_event(jsonb) to headroom_operator;
alter function public.apply_store_event(jsonb) owner to headroom_service;
