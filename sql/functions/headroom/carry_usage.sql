-- Adds to a user's counts what those had counted from whom the user's transactions came, each of them once however many
-- came; and takes off what went on with a transaction to somebody else. The caller holds the user's row.
create or replace function headroom.carry_usage(p_user_id uuid, p_told text, p_id text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_terms headroom.terms;
    v_anchor_day integer;
    v_month date;
    v_billing_period text;
    v_starts_at timestamptz;
    v_ends_at timestamptz;
    v_change record;
    v_before public.message_usage;
    v_after public.message_usage;
    v_counted integer;
    v_difference bigint;
begin
    -- Most users have what they bought themselves, and a renewal of theirs is not to cost what follows.
    if not exists (
        select from headroom.store_owners as owners where owners.person = p_user_id::text and owners.step > 0
    ) and not exists (
        select from headroom.store_carried_usage as carried where carried.user_id = p_user_id
    ) then
        return;
    end if;
    v_terms := headroom.terms_of(p_user_id, v_now, 'deny');
    -- The monthly period as headroom.terms_of has it, also of who has no monthly plan just now: what came with a
    -- subscription is not to depend on what an operator, or an event that is late, makes of it meanwhile.
    select coalesce(max(subscriber.anchor_day), 1) into v_anchor_day
    from headroom.subscribers as subscriber where subscriber.user_id = p_user_id;
    v_month := headroom.cycle_month(v_now, v_anchor_day);
    if exists (
        select from public.message_usage as usage
        where usage.user_id = p_user_id
            and usage.billing_period = headroom.month_label((v_month + interval '1 month')::date)
    ) then
        v_month := (v_month + interval '1 month')::date;
    end if;
    v_billing_period := headroom.month_label(v_month);
    v_ends_at := headroom.cycle_start((v_month + interval '1 month')::date, v_anchor_day);
    -- The count stays where a new anchor day moves the period that has it, and with the count what came to it before.
    update headroom.store_carried_usage as carried set ends_at = v_ends_at
    where carried.user_id = p_user_id and carried.billing_period = v_billing_period
        and carried.ends_at > v_now and carried.ends_at <> v_ends_at;
    select least(headroom.cycle_start(v_month, v_anchor_day), v_now, min(carried.starts_at)) into v_starts_at
    from headroom.store_carried_usage as carried
    where carried.user_id = p_user_id and carried.billing_period = v_billing_period and carried.ends_at > v_now;
    for v_change in
        with given as (
            select
                owners.transaction, owners.source, owners.is_alias, owners.made_at, owners.usage,
                giver.person as origin
            from headroom.store_owners as owner
            join headroom.store_owners as owners
                on owners.source = owner.source and owners.transaction = owner.transaction and owners.step > 0
            join headroom.store_owners as giver
                on giver.source = owners.source and giver.transaction = owners.transaction
                    and giver.step = owners.step - 1
            where owner.person = p_user_id::text and giver.person <> owner.person and owners.usage is not null
                and not exists (
                    select from headroom.store_owners as later
                    where later.source = owner.source and later.transaction = owner.transaction
                        and later.step > owner.step
                )
        ),
        origins as (
            select
                case counted.kind when 'monthly' then v_billing_period else counted.kind end as billing_period,
                given.origin, max(counted.messages::integer) as messages
            from given
            cross join lateral jsonb_each_text(given.usage) as counted (kind, messages)
            where case
                when given.is_alias then exists (
                    select from headroom.plans as plans where plans.plan = counted.kind and plans.cycle = 'trial'
                )
                -- Only what the transaction is, or was: a monthly plan, a trial.
                else exists (
                    select from headroom.store_events as events
                    join headroom.plans as plans on plans.plan = events.plan
                    where events.source = given.source and events.original_transaction_id = given.transaction
                        and case counted.kind
                            when 'monthly' then plans.cycle = 'monthly'
                                and given.made_at >= v_starts_at
                            else plans.cycle = 'trial' and plans.plan = counted.kind
                        end
                )
            end
            group by 1, 2
        ),
        wanted as (
            select origins.billing_period, least(sum(origins.messages), 2147483647)::integer as messages
            from origins group by 1
        ),
        present as (
            select carried.* from headroom.store_carried_usage as carried
            where carried.user_id = p_user_id and carried.ends_at > v_now
        )
        select
            coalesce(wanted.billing_period, present.billing_period) as billing_period,
            coalesce(wanted.messages, 0) as messages, coalesce(present.messages, 0) as messages_before,
            present.generation, coalesce(present.counted, 0) as counted
        from wanted
        full join present on present.billing_period = wanted.billing_period
        where coalesce(wanted.messages, 0) <> coalesce(present.messages, 0)
    loop
        v_difference := v_change.messages - v_change.messages_before;
        if v_difference > 0 then
            insert into public.message_usage (user_id, billing_period, updated_at, plan, plan_limit, "limit")
            select
                p_user_id, v_change.billing_period, v_now, plans.plan, limits.messages, limits.messages
            from (select) as always
            left join headroom.plans as plans on plans.plan = case
                when not headroom.is_month(v_change.billing_period) then v_change.billing_period
                when v_terms.cycle = 'monthly' then v_terms.plan
            end
            -- Whoever reads the table takes null for no limit.
            cross join lateral (
                select case when plans.plan is not null or v_terms.allowance is null then plans.allowance else 0 end
            ) as limits (messages)
            on conflict (user_id, billing_period) do nothing;
        end if;
        select * into v_before from public.message_usage as usage
        where usage.user_id = p_user_id and usage.billing_period = v_change.billing_period
        for update;
        if not found then
            delete from headroom.store_carried_usage as carried
            where carried.user_id = p_user_id and carried.billing_period = v_change.billing_period;
            continue;
        end if;
        -- What came before a reset is not in the count any more.
        v_counted := case when v_before.generation = v_change.generation then v_change.counted else 0 end;
        v_difference := greatest(v_difference, -least(v_counted, v_before.message_count));
        -- "released" says that a lower count is no reset.
        update public.message_usage as usage
        set message_count = least(usage.message_count + v_difference, 2147483647),
            released = usage.released + greatest(-v_difference, 0),
            updated_at = v_now, usable_until = '-infinity'
        where usage.user_id = p_user_id and usage.billing_period = v_change.billing_period
        returning * into v_after;
        insert into headroom.store_carried_usage (
            user_id, billing_period, generation, messages, counted, starts_at, ends_at
        ) values (
            p_user_id, v_change.billing_period, v_after.generation, v_change.messages,
            greatest(v_counted + v_after.message_count - v_before.message_count, 0),
            case when headroom.is_month(v_change.billing_period) then v_starts_at else '-infinity' end,
            case when headroom.is_month(v_change.billing_period) then v_ends_at else 'infinity' end
        )
        on conflict (user_id, billing_period) do update
        set generation = excluded.generation, messages = excluded.messages, counted = excluded.counted,
            starts_at = excluded.starts_at, ends_at = excluded.ends_at;
        perform headroom.record_change(
            p_user_id, v_change.billing_period, 'store_event', headroom.usage_record(v_before),
            headroom.usage_record(v_after), p_told, p_id
        );
    end loop;
end
$$;
revoke all on function headroom.carry_usage(uuid, text, text) from public;
grant execute on function headroom.carry_usage(uuid, text, text) to headroom_service;
