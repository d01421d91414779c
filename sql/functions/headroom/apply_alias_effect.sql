-- Several ids of one person: what the others used of a trial is used, and when it began it began.
create or replace function headroom.apply_alias_effect(
    p_notification headroom.store_notifications, p_effect jsonb, p_place integer
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_identities constant text[] := headroom.read_store_identities('identities', p_effect -> 'identities');
    v_first constant text := headroom.store_person(p_notification.source, v_identities);
    v_other text;
    v_number integer := 0;
    v_name text;
begin
    if headroom.user_of_person(v_first) is null then
        return;
    end if;
    for v_other in
        select distinct names.identity from unnest(v_identities) as names (identity)
        where names.identity not like '%:%' and names.identity <> v_first order by 1
    loop
        v_number := v_number + 1;
        v_name := concat_ws(':', 'alias', p_notification.id, p_place, v_number);
        insert into headroom.store_owners (
            source, transaction, step, person, since, told_by, is_alias, made_at, usage
        ) values
            (p_notification.source, v_name, 0, v_other, '-infinity', p_notification.id, true, headroom.now(), null),
            (
                p_notification.source, v_name, 1, v_first, p_notification.happened_at, p_notification.id, true,
                headroom.now(), headroom.own_usage(v_other::uuid)
            )
        on conflict (source, transaction, step) do nothing;
        update headroom.subscribers as subscriber
        set trial_started_at = least(subscriber.trial_started_at, other.trial_started_at)
        from headroom.subscribers as other
        where subscriber.user_id = v_first::uuid and other.user_id = v_other::uuid
            and other.trial_started_at is not null;
    end loop;
    -- A trial that goes on does so as the one that began first.
    update headroom.subscriptions as subscription set started_at = subscriber.trial_started_at
    from headroom.subscribers as subscriber
    join headroom.plans as plans on plans.cycle = 'trial'
    where subscription.user_id = v_first::uuid and subscriber.user_id = v_first::uuid
        and subscription.plan = plans.plan and subscription.started_at > subscriber.trial_started_at;
    update public.message_usage as usage set usable_until = '-infinity'
    where usage.user_id = v_first::uuid and usage.usable_until > '-infinity';
end
$$;
revoke all on function headroom.apply_alias_effect(headroom.store_notifications, jsonb, integer) from public;
grant execute on function headroom.apply_alias_effect(headroom.store_notifications, jsonb, integer) to headroom_service;
