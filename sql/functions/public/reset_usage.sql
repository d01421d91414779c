-- Sets a user's count to 0 in the named period, or in the current one, and closes an open window. The period 'window'
-- is the open window alone: the counts of periods stay, and without an open window nothing is changed. The counts of
-- models and members are reset, too; with p_model or p_member only those are. Returns the usage of the current period.
-- Locks the usage row.
create or replace function public.reset_usage(
    p_user_id uuid, p_billing_period text default null, p_model text default null, p_member uuid default null
) returns headroom.answer
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_period text := p_billing_period;
    v_before public.message_usage;
    v_entitlement headroom.entitlement;
    v_window headroom.usage_window;
    v_snapshot headroom.usage_snapshot;
    -- It is a variable, because Citus sends no UPDATE that calls nextval.
    v_generation bigint;
begin
    if p_user_id is null then
        raise exception 'p_user_id is null: pass the user''s uuid' using errcode = 'null_value_not_allowed';
    end if;
    perform headroom.recreate_forgotten_subscriber(p_user_id);
    -- The slow path locks several rows of a user while it holds this lock.
    perform from headroom.subscribers
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id
    for no key update;
    v_entitlement := headroom.entitlement(p_user_id, headroom.now(), headroom.unknown_users_policy());
    if headroom.is_periodic(v_entitlement.cycle) and v_entitlement.spent_messages is not null then
        -- The count includes messages of rows that were written while the clock was ahead.
        perform headroom.lock_subscriber(p_user_id);
        perform headroom.correct_clock_jump(p_user_id, v_entitlement, headroom.now());
    end if;
    if p_model is not null or p_member is not null then
        perform headroom.reset_parts(p_user_id, p_billing_period, v_entitlement, p_model, p_member);
        v_snapshot := headroom.read_usage_snapshot(p_user_id, headroom.unknown_users_policy());
        return headroom.format_answer(
            p_user_id, v_snapshot, 0, headroom.requested_parts(
                p_user_id, v_snapshot.plan, v_snapshot.billing_period, p_model, p_member
            )
        );
    elsif v_period = 'window' then
        v_window := headroom.close_window(p_user_id, v_entitlement.billing_period);
        if v_window.opened_at is not null then
            perform headroom.record_change(
                p_user_id, v_window.billing_period, 'reset',
                jsonb_build_object('period', v_window.billing_period, 'window_count', v_window.used),
                jsonb_build_object('period', v_window.billing_period, 'window_count', 0)
            );
        end if;
        return headroom.format_answer(
            p_user_id, headroom.read_usage_snapshot(p_user_id, headroom.unknown_users_policy()), 0
        );
    end if;
    if v_period is null then
        v_period := (headroom.read_usage_snapshot(p_user_id, headroom.unknown_users_policy())).billing_period;
    end if;
    if v_period = v_entitlement.billing_period then
        perform headroom.close_window(p_user_id, v_period);
        perform headroom.close_part_windows(p_user_id, null, null);
    end if;
    -- What was taken from balances stays taken.
    perform headroom.settle_balances(p_user_id, headroom.now());
    select * into v_before from public.message_usage
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = v_period
    for update;
    if not found and p_billing_period is not null then
        raise exception 'user % has no usage in period %', p_user_id, quote_literal(p_billing_period)
            using errcode = 'no_data_found',
                hint = 'select billing_period from message_usage where user_id = … lists the periods.';
    end if;
    -- A message that is released later is not taken off the new count.
    v_generation := headroom.next_generation();
    update public.message_usage
    set message_count = 0, generation = v_generation, released = least(released::bigint + message_count, 2147483647),
        updated_at = headroom.now(), window_opened_at = null, window_ends_at = null, window_count = null,
        window_held = null
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = v_period;
    perform headroom.record_change(
        p_user_id, v_period, 'reset', headroom.usage_record(v_period, v_before.message_count, v_before."limit"),
        case when found then headroom.usage_record(v_period, 0, v_before."limit") end
    );
    perform headroom.reset_all_parts(p_user_id, v_period);
    return headroom.format_answer(
        p_user_id, headroom.read_usage_snapshot(p_user_id, headroom.unknown_users_policy()), 0
    );
end
$$;
alter function public.reset_usage(uuid, text, text, uuid) owner to headroom_owner;
