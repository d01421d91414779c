-- Creates the subscriber and the subscription of an unknown user whose first message is being counted. Returns false if
-- another session has created a subscription meanwhile; the caller then reads the user again. Locks the subscriber.
create or replace function headroom.create_first_subscription(p_user_id uuid, p_entitlement headroom.entitlement)
    returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    insert into headroom.subscribers (bucket, user_id, trial_started_at)
    values (
        headroom.bucket_of(p_user_id), p_user_id,
        case (p_entitlement).cycle when 'trial' then (p_entitlement).started_at end
    )
    on conflict (bucket, user_id) do nothing;
    if not found then
        -- The subscriber exists without a subscription: it only has an anchor day, or its subscription was removed.
        perform headroom.lock_for_message(p_user_id, false);
        if exists (
            select from headroom.subscriptions where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id
        ) then
            return false;
        end if;
        update headroom.subscribers
        set trial_started_at = coalesce(
            trial_started_at, case (p_entitlement).cycle when 'trial' then (p_entitlement).started_at end
        )
        where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id;
    end if;
    insert into headroom.subscriptions (bucket, user_id, original_transaction_id, plan, started_at, expires_at)
    select
        headroom.bucket_of(p_user_id), p_user_id, 'first message', (p_entitlement).plan, (p_entitlement).started_at,
        case (p_entitlement).cycle when 'trial' then subscriber.trial_ends_at end
    from headroom.subscribers as subscriber
    where subscriber.bucket = headroom.bucket_of(p_user_id) and subscriber.user_id = p_user_id;
    return true;
end
$$;
