-- Corrects a user's rows that were written while the database's clock was ahead, which are those dated more than an
-- hour after p_at. The messages of periods after the open one were sent in reality before p_at, so they count in the
-- open period, and the rows of those periods are deleted. A trial that a message began starts at p_at, and holds get
-- their remaining time again. Windows that were opened then, even in rows of other plans, become one
-- (headroom.correct_window). Counts of models and members follow (headroom.correct_parts). The caller has locked the
-- subscriber. Locks the usage rows.
--
-- Without the correction, the user would have an allowance in both periods, or a trial that lasts years.
create or replace function headroom.correct_clock_jump(
    p_user_id uuid, p_entitlement headroom.entitlement, p_at timestamptz
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_latest constant timestamptz := p_at + interval '1 hour';
    v_at_in_utc constant timestamp := p_at at time zone 'UTC';
    v_period constant text := p_entitlement.billing_period;
    v_later text[];
    v_messages bigint;
    v_held bigint;
    v_granted bigint;
    v_row public.message_usage;
    v_window headroom.usage_window;
begin
    perform headroom.detach_balances(p_user_id, p_at);
    update headroom.subscriptions as subscription set started_at = p_at
    where subscription.bucket = headroom.bucket_of(p_user_id) and subscription.user_id = p_user_id
        and subscription.original_transaction_id = 'first message' and subscription.started_at > v_latest
        -- If there is none, an operator has set that start.
        and exists (
            select from public.message_usage as usage
            where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
                and usage.billing_period = subscription.plan and usage.updated_at > v_latest
        );
    if found then
        update headroom.subscribers set trial_started_at = p_at
        where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and trial_started_at > v_latest;
    end if;
    -- The sum is in UTC, where it is immutable: Citus refuses others about columns.
    update headroom.message_keys
    set created_at = p_at, expires_at = (v_at_in_utc + (expires_at - created_at)) at time zone 'UTC'
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and created_at > v_latest;
    update public.message_usage set updated_at = p_at
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = v_period
        and updated_at > v_latest;
    v_window := headroom.correct_window(p_user_id, p_at);
    select
        array_agg(later.billing_period), sum(later.message_count), sum(later.held), sum(coalesce(later.granted, 0))
    into v_later, v_messages, v_held, v_granted
    from (
        select usage.billing_period, usage.message_count, usage.held, usage.granted
        from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and headroom.sortable_label(usage.billing_period) > headroom.sortable_label(v_period)
            and headroom.label_cycle(usage.billing_period) = headroom.label_cycle(v_period)
            and usage.updated_at > v_latest
        order by usage.billing_period for update
    ) as later;
    perform headroom.correct_parts(p_user_id, v_period, v_later, p_at);
    if v_later is null then
        if v_window.opened_at is not null then
            perform headroom.write_window(
                p_user_id,
                coalesce((
                    select usage.billing_period from public.message_usage as usage
                    where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
                        and usage.billing_period = v_period
                ), v_window.billing_period),
                v_window
            );
        end if;
        return;
    end if;

    insert into public.message_usage (
        bucket, user_id, billing_period, updated_at, plan, plan_limit, "limit", started_at
    )
    values (
        headroom.bucket_of(p_user_id), p_user_id, v_period, p_at, p_entitlement.plan, p_entitlement.allowance,
        p_entitlement.allowance, p_entitlement.started_at
    )
    on conflict (user_id, billing_period) do nothing;
    v_row := headroom.lock_usage(p_user_id, v_period);
    update headroom.message_keys set billing_period = v_period, generation = v_row.generation
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = any(v_later);
    update headroom.grants set billing_period = v_period
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = any(v_later);
    delete from public.message_usage
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = any(v_later);
    update public.message_usage
    set message_count = least(message_count + v_messages, 2147483647), held = least(held + v_held, 2147483647),
        granted = nullif(least(coalesce(granted, 0) + v_granted, 2147483647), 0),
        "limit" = least("limit" + v_granted, 2147483647), updated_at = p_at, usable_until = '-infinity'
    where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = v_period;
    if v_window.opened_at is not null then
        perform headroom.write_window(p_user_id, v_period, v_window);
    end if;
    perform headroom.record_change(
        p_user_id, v_period, 'update', headroom.usage_record(v_period, v_row.message_count, v_row."limit"),
        headroom.usage_record(
            v_period, least(v_row.message_count + v_messages, 2147483647)::integer,
            least(v_row."limit" + v_granted, 2147483647)::integer
        ),
        'messages of ' || array_to_string(v_later, ', ') || ': the database''s clock was ahead when they were sent'
    );
end
$$;
