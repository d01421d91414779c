-- A user's standing now. Reads only: nothing is created, so a trial that has not started shows as if it started now.
create or replace function headroom.peek(p_user_id uuid, p_unknown_users text) returns headroom.standing
    language sql stable
begin atomic
    select headroom.standing_from(
        terms, usage.message_count,
        case when usage.held > 0 then headroom.held_now(p_user_id, terms.billing_period, usage.held) end,
        headroom.limit_in_force(usage.plan, usage.plan_limit, usage."limit", usage.granted, terms.allowance),
        headroom.now()
    )
    from headroom.entitlement(p_user_id, headroom.now(), p_unknown_users) as terms
    left join public.message_usage as usage
        on usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period = terms.billing_period;
end;
