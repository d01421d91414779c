-- Grants a user p_messages beyond the plan's allowance, once for each p_key. Without p_expires_at, the limit of the
-- current period is raised; with it, they become a balance until that time, infinity for never. Returns true if the key
-- had already granted the same. Raises HR002 if it had granted something else. Creates the usage row if there is none,
-- but starts no trial. Locks the subscriber, then the usage row.
--
-- p_is_purchase: p_key is that of a purchase (headroom.purchase_key). No other caller may use such a key, because the
-- purchase would then find it taken.
create or replace function headroom.grant_once(
    p_user_id uuid, p_messages integer, p_reason text, p_key text, p_expires_at timestamptz,
    p_unknown_users_policy text, p_is_purchase boolean default false
) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_bucket smallint;
    v_entitlement headroom.entitlement;
    v_period text;
    v_row public.message_usage;
    v_granted headroom.grants;
    v_limit integer;
begin
    if p_user_id is null or p_messages is null then
        raise exception 'p_user_id and p_messages must not be null' using errcode = 'null_value_not_allowed';
    elsif p_messages not between 1 and 1000000 then
        raise exception 'p_messages must be 1 to 1000000' using errcode = 'invalid_parameter_value';
    elsif not (octet_length(p_key) between 1 and 128 and p_key !~ '[[:cntrl:]]') then
        raise exception 'p_key must be 1 to 128 bytes without control characters'
            using errcode = 'invalid_parameter_value';
    elsif p_key like 'store:%' and not p_is_purchase then
        raise exception 'p_key begins with store:, as the keys of purchases do'
            using errcode = 'invalid_parameter_value', hint = 'Choose a key that begins otherwise.';
    elsif octet_length(p_reason) > 1024 or p_reason ~ '[[:cntrl:]]' then
        raise exception 'p_reason must be one line of at most 1024 bytes' using errcode = 'invalid_parameter_value';
    elsif p_expires_at < 'infinity' and not headroom.is_instant(p_expires_at) then
        raise exception 'p_expires_at must be in the years 2000 to 9999, or infinity for never'
            using errcode = 'invalid_parameter_value', hint = 'Without it, the messages end with the current period.';
    end if;
    if p_expires_at is null then
        perform headroom.recreate_forgotten_subscriber(p_user_id);
    else
        -- It says that the user has balances.
        perform headroom.lock_subscriber(p_user_id);
    end if;
    v_bucket := headroom.bucket_of(p_user_id);
    -- If there is a subscriber, the lock keeps plan and period until the transaction ends.
    perform headroom.lock_for_messages(v_bucket, array[p_user_id], array[false]);
    v_entitlement := headroom.entitlement(p_user_id, v_now, p_unknown_users_policy);
    v_period := case when p_expires_at is null then v_entitlement.billing_period end;

    -- This waits for another session that inserts the same key.
    insert into headroom.grants (
        bucket, user_id, key, billing_period, messages, reason, granted_at, actor, expires_at
    ) values (
        v_bucket, p_user_id, coalesce(p_key, 'unnamed ' || gen_random_uuid()), v_period, p_messages, p_reason, v_now,
        headroom.actor(), p_expires_at
    )
    on conflict (bucket, user_id, key) do nothing;
    if not found then
        select grants.* into strict v_granted from headroom.grants as grants
        where grants.bucket = v_bucket and grants.user_id = p_user_id and grants.key = p_key;
        if v_granted.messages <> p_messages then
            raise exception 'this key granted % messages before, not %', v_granted.messages, p_messages
                using errcode = 'HR002', hint = 'Use a new key for a new grant.';
        elsif v_granted.expires_at is distinct from p_expires_at then
            raise exception 'this key granted messages that end %, not %', headroom.grant_end(v_granted.expires_at),
                headroom.grant_end(p_expires_at)
                using errcode = 'HR002', hint = 'Use a new key for a new grant.';
        end if;
        return true;
    elsif p_expires_at <= v_now then
        raise exception 'p_expires_at must be in the future'
            using errcode = 'invalid_parameter_value', hint = 'Without it, the messages end with the current period.';
    end if;

    insert into public.message_usage (bucket, user_id, billing_period, updated_at, plan, plan_limit, "limit")
    values (
        v_bucket, p_user_id, v_entitlement.billing_period, v_now, v_entitlement.plan, v_entitlement.allowance,
        v_entitlement.allowance
    )
    on conflict (user_id, billing_period) do nothing;
    v_row := headroom.lock_usage(p_user_id, v_entitlement.billing_period);
    if v_row.user_id is null then
        perform headroom.raise_discarded_row('public.message_usage', p_user_id);
    end if;
    perform headroom.detach_balances(p_user_id, v_now);
    v_row := headroom.lock_usage(p_user_id, v_entitlement.billing_period);
    v_limit := headroom.effective_limit(
        v_row.plan, v_row.plan_limit, v_row."limit", v_row.granted, v_entitlement.allowance
    );
    if greatest(coalesce(v_row.granted, 0), v_limit)::bigint + p_messages > 2147483647 then
        raise exception 'the limit would be more than 2147483647' using errcode = 'numeric_value_out_of_range';
    end if;
    -- The next message, which may be the first one of a trial, decides whether the row can be used.
    perform headroom.write_usage_rows(
        v_bucket, array[v_entitlement], array[v_row.generation], array[v_row.message_count], array[v_row.held],
        array[0], array[v_limit + case when p_expires_at is null then p_messages else 0 end],
        array['-infinity'::timestamptz], null
    );
    if p_expires_at is null then
        update public.message_usage set granted = coalesce(granted, 0) + p_messages
        where bucket = v_bucket and user_id = p_user_id and billing_period = v_entitlement.billing_period;
        perform headroom.record_change(
            p_user_id, v_entitlement.billing_period, 'grant',
            headroom.usage_record(v_entitlement.billing_period, v_row.message_count, v_row."limit"),
            headroom.usage_record(v_entitlement.billing_period, v_row.message_count, v_limit + p_messages), p_reason
        );
    else
        perform headroom.record_change(
            p_user_id, null, 'grant', null,
            jsonb_build_object('messages', p_messages, 'expires', headroom.grant_end(p_expires_at)), p_reason
        );
    end if;
    perform headroom.attach_balances(p_user_id, v_entitlement.billing_period, v_now);
    return false;
end
$$;
