-- What a user has counted in the periods that run: {"monthly": 160, "trial": 41}, trials by their plan. Without what came
-- with a subscription: that is others' own.
create or replace function headroom.own_usage(p_user_id uuid) returns jsonb
    language sql stable
begin atomic
    select coalesce(jsonb_object_agg(newest.kind, newest.messages), '{}')
    from (
        select distinct on (kinds.kind)
            kinds.kind,
            greatest(
                usage.message_count
                    - coalesce(case when carried.generation = usage.generation then carried.counted end, 0),
                0
            ) as messages
        from public.message_usage as usage
        cross join lateral (
            select case when headroom.is_month(usage.billing_period) then 'monthly' else usage.billing_period end as kind
        ) as kinds
        left join headroom.store_carried_usage as carried
            on carried.user_id = usage.user_id and carried.billing_period = usage.billing_period
        left join headroom.subscribers as subscriber on subscriber.user_id = usage.user_id
        where usage.user_id = p_user_id and (
            kinds.kind <> 'monthly'
            or headroom.now() < coalesce(
                usage.resets_at,
                case when headroom.is_month(usage.billing_period) then headroom.cycle_start(
                    ((usage.billing_period || '-01')::date + interval '1 month')::date,
                    coalesce(subscriber.anchor_day, 1)
                ) end
            )
        )
        order by kinds.kind, usage.billing_period desc
    ) as newest;
end;
revoke all on function headroom.own_usage(uuid) from public;
grant execute on function headroom.own_usage(uuid) to headroom_service;
