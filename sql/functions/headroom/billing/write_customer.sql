-- Writes a billing event, and the changes of the customer's rows that the service has computed from it. Returns the
-- answer to the sender of the event: {"outcome", "problem", "user", "plan", "state", "access", "reason", "expires",
-- "previous_plan"}. Call headroom.lock_and_read_customer before it in the same transaction.
--
-- p_change: {"event", "results": new outcomes of earlier events, "locks": the users whose usage rows are locked, in
-- ascending order, "users", "purchases", "transfers", "reverted_transfers"}. A member without changes is absent.
create or replace function headroom.write_customer(p_change jsonb) returns jsonb
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_event constant jsonb := p_change -> 'event';
    v_source constant text := v_event ->> 'source';
    v_event_id constant text := v_event ->> 'id';
    v_is_link constant boolean := v_event #>> '{effects,0,kind}' = 'linked' is true;
    -- An operator who links a customer or replays an event may give a reason.
    v_reason constant text := case
        when v_is_link then 'link of ' || v_source
        else (v_event ->> 'type') || ' reported by ' || v_source
    end || case
        when v_event ? 'before' then coalesce(
            case when v_is_link then '; ' else '; replayed: ' end
            || nullif(current_setting('headroom.reason', true), ''), ''
        )
        else ''
    end;
    v_user_id constant uuid := (v_event ->> 'user')::uuid;
    v_user jsonb;
    v_transfers jsonb := '[]';
    v_locked_id uuid;
    v_written record;
    v_entitlement headroom.entitlement;
    v_was_recorded boolean := false;
    v_answer jsonb;
begin
    -- The rows are locked in ascending order, as by batches of messages. The loops here count, because a loop over the
    -- elements as rows opens a cursor even without elements. If only one user's subscription changes,
    -- headroom.apply_entitlement locks the rows.
    for v_index in 0 .. case
        when p_change -> 'locks' = jsonb_build_array(p_change #> '{users,0,user}') then -1
        else coalesce(jsonb_array_length(p_change -> 'locks'), 0) - 1
    end loop
        v_locked_id := (p_change -> 'locks' ->> v_index)::uuid;
        perform from public.message_usage
        where bucket = headroom.bucket_of(v_locked_id) and user_id = v_locked_id order by billing_period for update;
    end loop;
    -- This comes before the loop below: a plan with shorter windows that a giver still has may end the giver's window
    -- there.
    for v_index in 0 .. coalesce(jsonb_array_length(p_change -> 'transfers'), 0) - 1 loop
        v_transfers := v_transfers || (p_change -> 'transfers' -> v_index || jsonb_build_object(
            'window', headroom.open_window(
                (p_change -> 'transfers' -> v_index ->> 'giver')::uuid, 2678400, headroom.now()
            )
        ));
    end loop;
    for v_index in 0 .. coalesce(jsonb_array_length(p_change -> 'users'), 0) - 1 loop
        v_user := p_change -> 'users' -> v_index;
        v_written := headroom.write_subscriptions(v_user, v_reason, v_event_id);
        if (v_user ->> 'user')::uuid = v_user_id then
            v_entitlement := v_written.entitlement;
            v_was_recorded := v_written.is_recorded;
        end if;
    end loop;
    for v_index in 0 .. coalesce(jsonb_array_length(p_change -> 'reverted_transfers'), 0) - 1 loop
        perform headroom.revert_transferred_usage(p_change -> 'reverted_transfers' -> v_index, v_reason, v_event_id);
    end loop;
    for v_index in 0 .. jsonb_array_length(v_transfers) - 1 loop
        perform headroom.transfer_usage(v_transfers -> v_index, v_reason, v_event_id);
    end loop;
    for v_index in 0 .. coalesce(jsonb_array_length(p_change -> 'purchases'), 0) - 1 loop
        perform headroom.write_purchase(p_change -> 'purchases' -> v_index, v_reason, v_event_id);
    end loop;
    for v_index in 0 .. coalesce(jsonb_array_length(p_change -> 'users'), 0) - 1 loop
        perform headroom.move_purchases((p_change -> 'users' -> v_index ->> 'user')::uuid, v_reason, v_event_id);
    end loop;
    if p_change ? 'results' then
        -- This event has changed the outcome of these earlier events.
        update headroom.billing_events as events
        set outcome = written.outcome, user_id = written."user",
            missing_prerequisite = written.missing_prerequisite, unmapped_product = written.unmapped_product,
            problem = written.problem,
            applied_at = case
                when written.outcome = 'failed' then null else coalesce(events.applied_at, headroom.now())
            end
        from jsonb_to_recordset(p_change -> 'results') as written (
            source text, id text, outcome text, "user" uuid, missing_prerequisite text, unmapped_product text,
            problem text
        )
        where events.source = written.source and events.id = written.id;
    end if;
    if v_user_id is not null and v_entitlement.plan is null then
        v_entitlement := headroom.entitlement(v_user_id, headroom.now(), 'deny');
    end if;
    v_answer := headroom.billing_answer(v_event ->> 'outcome', v_user_id, v_event ->> 'problem', v_entitlement);
    perform headroom.write_billing_event(v_event, v_answer - '{outcome,user,problem}'::text[]);
    -- An event without a change is also recorded in the user's audit trail, and a failure once.
    if not v_was_recorded and v_user_id is not null
        and (v_event ->> 'outcome' <> 'failed' or not v_event ? 'before') then
        -- A transfer or a purchase may already have recorded it.
        if not exists (
            select from headroom.audit_log
            where bucket = headroom.bucket_of(v_user_id) and user_id = v_user_id and event_id = v_event_id
                and at = headroom.now() and reason = v_reason
        ) then
            perform headroom.record_change(
                v_user_id, null, 'store_event', null,
                jsonb_build_object(
                    'happened', headroom.instant_text((v_event ->> 'at')::timestamptz), 'outcome', v_event ->> 'outcome'
                ),
                v_reason, v_event_id
            );
        end if;
    end if;
    return v_answer;
end
$$;
