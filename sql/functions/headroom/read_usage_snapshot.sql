-- Returns a user's usage snapshot now. Writes nothing: a trial that has not started is returned as if it started now.
create or replace function headroom.read_usage_snapshot(p_user_id uuid, p_unknown_users_policy text)
    returns headroom.usage_snapshot
    language sql stable
begin atomic
    select headroom.build_usage_snapshot(
        entitlement, usage.message_count,
        case when usage.held > 0 then headroom.held_messages(p_user_id, entitlement.billing_period, usage.held) end,
        headroom.effective_limit(usage.plan, usage.plan_limit, usage."limit", usage.granted, entitlement.allowance),
        headroom.now()
    )
    from headroom.entitlement(p_user_id, headroom.now(), p_unknown_users_policy) as entitlement
    left join public.message_usage as usage
        on usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period = entitlement.billing_period;
end;
