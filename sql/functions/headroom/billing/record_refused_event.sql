-- Records as failed a billing event whose effect the database refused: a value out of range, a constraint or a trigger.
-- Its transaction was rolled back. Returns the answer to the sender of the event. Returns null, and writes nothing, if
-- p_is_replay and the event was applied before.
--
-- It reads and writes nothing of the customer's users but the user's audit trail, so that the cause of the refusal does
-- not refuse the record, too. The event is recorded without effects, so that later events of the customer do not meet
-- the same refusal. A replay translates its payload again.
--
-- p_event: "event" in the parameter of headroom.write_customer, with "problem" and without "effects", "outcome" and
-- "customer"; "user" may be a user who is not in headroom.subscribers yet. p_names: names of its customer.
create or replace function headroom.record_refused_event(p_event jsonb, p_names text[], p_is_replay boolean)
    returns jsonb
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_recorded headroom.billing_events;
    v_customer_id bigint;
    v_user_id uuid := (p_event ->> 'user')::uuid;
begin
    if p_names <> '{}' then
        v_customer_id := headroom.lock_customer(p_names);
    end if;
    select * into v_recorded from headroom.billing_events as events
    where events.source = p_event ->> 'source' and events.id = p_event ->> 'id'
    for update;
    if v_recorded.outcome <> 'failed' then
        -- Without p_is_replay, another session has applied the event meanwhile.
        return case
            when not p_is_replay
                then headroom.billing_answer('duplicate', v_recorded.user_id, v_recorded.problem, null)
        end;
    end if;
    begin
        if v_user_id is not null then
            perform headroom.lock_subscriber(v_user_id);
            if v_recorded.outcome is null then
                perform headroom.record_change(
                    v_user_id, null, 'store_event', null,
                    jsonb_build_object(
                        'happened', headroom.instant_text((p_event ->> 'at')::timestamptz), 'outcome', 'failed'
                    ),
                    (p_event ->> 'type') || ' reported by ' || (p_event ->> 'source'), p_event ->> 'id'
                );
            end if;
        end if;
    exception
        -- The refusal concerns the user's row. FORGET finds the event by its identities.
        when data_exception or integrity_constraint_violation or raise_exception or sqlstate 'HR011' then
            v_user_id := null;
    end;
    perform headroom.write_billing_event(
        p_event || jsonb_build_object(
            'customer', v_customer_id, 'user', v_user_id, 'effects', '[]'::jsonb, 'outcome', 'failed'
        ),
        null
    );
    return headroom.billing_answer('failed', v_user_id, p_event ->> 'problem', null);
end
$$;
