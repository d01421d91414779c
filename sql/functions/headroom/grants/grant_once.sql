-- Raises the limit of a user's current period by p_messages, once for each p_key. Returns true if the key had already
-- granted the same number. Raises HR002 if it had granted another number. Creates the usage row if there is none, but
-- starts no trial. Locks the subscriber, then the usage row.
--
-- p_is_purchase: p_key is that of a purchase (headroom.purchase_key). No other caller may use such a key, because the
-- purchase would then find it taken.
create or replace function headroom.grant_once(
    p_user_id uuid, p_messages integer, p_reason text, p_key text, p_unknown_users_policy text,
    p_is_purchase boolean default false
) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_entitlement headroom.entitlement;
    v_row public.message_usage;
    v_granted integer;
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
    end if;
    perform headroom.recreate_forgotten_subscriber(p_user_id);
    -- If there is a subscriber, the lock keeps plan and period until the transaction ends.
    perform headroom.lock_for_messages(headroom.bucket_of(p_user_id), array[p_user_id], array[false]);
    v_entitlement := headroom.entitlement(p_user_id, v_now, p_unknown_users_policy);

    -- This waits for another session that inserts the same key.
    insert into headroom.grants (bucket, user_id, key, billing_period, messages, reason, granted_at, actor)
    values (
        headroom.bucket_of(p_user_id), p_user_id, coalesce(p_key, 'unnamed ' || gen_random_uuid()),
        v_entitlement.billing_period, p_messages, p_reason, v_now, headroom.actor()
    )
    on conflict (bucket, user_id, key) do nothing;
    if not found then
        select messages into strict v_granted from headroom.grants
        where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and key = p_key;
        if v_granted <> p_messages then
            raise exception 'this key granted % messages before, not %', v_granted, p_messages
                using errcode = 'HR002', hint = 'Use a new key for a new grant.';
        end if;
        return true;
    end if;

    insert into public.message_usage (bucket, user_id, billing_period, updated_at, plan, plan_limit, "limit")
    values (
        headroom.bucket_of(p_user_id), p_user_id, v_entitlement.billing_period, v_now, v_entitlement.plan,
        v_entitlement.allowance, v_entitlement.allowance
    )
    on conflict (user_id, billing_period) do nothing;
    v_row := headroom.lock_usage(p_user_id, v_entitlement.billing_period);
    if v_row.user_id is null then
        perform headroom.raise_discarded_row('public.message_usage', p_user_id);
    end if;
    v_limit := headroom.effective_limit(
        v_row.plan, v_row.plan_limit, v_row."limit", v_row.granted, v_entitlement.allowance
    );
    if greatest(coalesce(v_row.granted, 0), v_limit)::bigint + p_messages > 2147483647 then
        raise exception 'the limit would be more than 2147483647' using errcode = 'numeric_value_out_of_range';
    end if;
    -- The next message, which may be the first one of a trial, decides whether the row can be used.
    perform headroom.write_usage_rows(
        headroom.bucket_of(p_user_id), array[v_entitlement], array[v_row.generation], array[v_row.message_count],
        array[v_row.held], array[0], array[v_limit + p_messages], array['-infinity'::timestamptz],
        null
    );
    update public.message_usage set granted = coalesce(granted, 0) + p_messages
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id
        and billing_period = v_entitlement.billing_period;
    perform headroom.record_change(
        p_user_id, v_entitlement.billing_period, 'grant',
        headroom.usage_record(v_entitlement.billing_period, v_row.message_count, v_row."limit"),
        headroom.usage_record(v_entitlement.billing_period, v_row.message_count, v_limit + p_messages), p_reason
    );
    return false;
end
$$;
