-- Makes one attempt of headroom.count_messages. Raises unique_violation or serialization_failure if another session has
-- created rows of the user meanwhile.
create or replace function headroom.try_to_count_messages(
    p_user_id uuid, p_messages integer, p_model text, p_member uuid, p_unknown_users_policy text,
    out snapshot headroom.usage_snapshot, out parts headroom.part_usage[]
)
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket constant smallint := headroom.bucket_of(p_user_id);
    v_user headroom.locked_user;
    v_snapshot headroom.usage_snapshot;
    v_messages bigint;
    v_is_allowed boolean;
begin
    select locked.* into strict v_user from headroom.lock_and_read_users(
        v_bucket, array[p_user_id], array[p_unknown_users_policy <> 'deny'], p_unknown_users_policy
    ) as locked;
    v_snapshot := v_user.snapshot;
    -- The user's rows are locked, so the parts do not change.
    parts := headroom.requested_parts(p_user_id, v_snapshot.plan, v_snapshot.billing_period, p_model, p_member);
    v_messages := p_messages::bigint * headroom.weight_of(parts);
    v_is_allowed := headroom.may_send(v_snapshot, p_messages, parts);
    if v_is_allowed then
        v_snapshot.used := least(v_snapshot.used + v_messages, 2147483647);
        v_snapshot.messages := p_messages;
        if v_snapshot.window_limit is not null then
            if v_snapshot.window_opened_at is null then
                v_snapshot.window_opened_at := v_snapshot.observed_at;
                v_snapshot.window_ends_at := v_snapshot.observed_at
                    + make_interval(secs => (v_user.entitlement).window_seconds);
            end if;
            v_snapshot.window_used := least(v_snapshot.window_used + v_messages, 2147483647);
        end if;
        if not (v_user.entitlement).has_subscription then
            perform headroom.create_first_subscriptions(
                v_bucket, array[p_user_id], array[v_snapshot.plan], array[v_snapshot.started_at],
                array[(select plans.cycle = 'trial' from headroom.plans as plans where plans.plan = v_snapshot.plan)],
                array[v_user.has_subscriber]
            );
        end if;
    end if;
    if v_is_allowed or v_user.is_outdated then
        perform headroom.write_usage_rows(
            v_bucket, array[v_user.entitlement], array[v_user.generation], array[v_snapshot.used],
            array[v_snapshot.held], array[0], array[v_user.plain_limit],
            array[case
                when v_is_allowed or (v_user.entitlement).has_subscription
                    then least((v_user.entitlement).usable_until, v_user.holds_end_at)
                else '-infinity'
            end],
            case when v_snapshot.window_limit is not null then array[
                case when v_snapshot.window_opened_at is not null then row(
                    null, v_snapshot.window_opened_at, v_snapshot.window_ends_at, v_snapshot.window_used,
                    v_snapshot.window_held, null
                )::headroom.usage_window end
            ] end
        );
        if not v_user.has_usage_row and v_user.has_subscriber and headroom.is_periodic((v_user.entitlement).cycle) then
            perform headroom.end_earlier_periods(v_bucket, array[p_user_id], array[v_snapshot.billing_period]);
        end if;
    end if;
    if (v_user.entitlement).has_balances then
        -- What does not fit into the limit without balances is taken from these.
        v_messages := case
            when v_is_allowed then least(
                greatest(v_snapshot.used::bigint + v_snapshot.held - v_user.plain_limit, 0), v_messages
            )
            else 0
        end;
        v_snapshot.extra := null;
        v_snapshot.extra_expires := null;
        v_snapshot."limit" := v_user.plain_limit + headroom.take_messages(
            p_user_id, v_snapshot.billing_period, v_messages, v_snapshot.observed_at
        );
        v_snapshot := headroom.add_balances(
            v_snapshot, headroom.live_balances(p_user_id, v_snapshot.observed_at)
        );
        perform headroom.attach_balances(p_user_id, v_snapshot.billing_period, v_snapshot.observed_at);
    end if;
    if v_is_allowed and parts is not null then
        parts := headroom.add_to_parts(parts, p_messages, v_snapshot.observed_at);
        perform headroom.write_part_usages(p_user_id, v_snapshot.billing_period, parts);
    end if;
    snapshot := v_snapshot;
end
$$;
