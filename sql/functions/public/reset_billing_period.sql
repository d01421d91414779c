-- Sets the counts of all users in a period to 0, and those of their models and members, closes the windows in these
-- rows, and returns the number of users' rows. A month or week without a number, as 2026-03, includes the periods with
-- one, as 2026-03.2. Locks the rows in the order of user_id, as batches do, so that it cannot deadlock with them.
-- Messages of these users wait until it commits.
create or replace function public.reset_billing_period(p_billing_period text) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_rows bigint := 0;
    v_bucket_rows bigint;
    v_buckets smallint[];
    -- A message that is released later is not taken off the new count. Citus sends no UPDATE that calls nextval.
    v_generation constant bigint := headroom.next_generation();
    -- This is the beginning of the labels with a number; null for a period that has none.
    v_prefix constant text := case
        when headroom.label_cycle(p_billing_period) in ('monthly', 'weekly') and strpos(p_billing_period, '.') = 0
            then p_billing_period || '.'
    end;
begin
    if p_billing_period is null
        or headroom.label_cycle(p_billing_period) is null and p_billing_period !~ '^[a-z][a-z0-9_]{0,31}$' then
        raise exception
            'p_billing_period must be YYYY-MM, YYYY-Www, YYYY-MM-DD, or a plan that never resets, such as trial'
            using errcode = 'invalid_parameter_value';
    end if;
    -- All buckets are done at once, except by Citus, which locks and updates rows of one bucket at a time.
    for v_buckets in
        select array_agg(buckets.bucket)
        from (select distinct unnest(map.buckets) as bucket from headroom.bucket_map as map) as buckets
        group by case when headroom.is_distributed() then buckets.bucket end
    loop
        -- What was taken from balances stays taken. All rows are locked before, in order.
        if exists (
            select from public.message_usage as usage
            where usage.bucket = any(v_buckets) and usage.extra is not null
                and (usage.billing_period = p_billing_period or starts_with(usage.billing_period, v_prefix))
        ) then
            perform from public.message_usage as usage
            where usage.bucket = any(v_buckets) and usage.message_count > 0
                and (usage.billing_period = p_billing_period or starts_with(usage.billing_period, v_prefix))
            order by usage.user_id, usage.billing_period
            for update;
            perform headroom.settle_balances(usage.user_id, headroom.now())
            from public.message_usage as usage
            where usage.bucket = any(v_buckets) and usage.extra is not null and usage.message_count > 0
                and (usage.billing_period = p_billing_period or starts_with(usage.billing_period, v_prefix));
        end if;
        with locked_rows as (
            select usage.bucket, usage.user_id, usage.billing_period, usage.message_count
            from public.message_usage as usage
            where usage.bucket = any(v_buckets) and usage.message_count > 0
                and (usage.billing_period = p_billing_period or starts_with(usage.billing_period, v_prefix))
            order by usage.user_id, usage.billing_period
            for update
        ),
        reset_rows as (
            update public.message_usage as usage
            set message_count = 0, generation = v_generation,
                released = least(usage.released::bigint + usage.message_count, 2147483647), updated_at = headroom.now(),
                window_opened_at = null, window_ends_at = null, window_count = null, window_held = null
            from locked_rows
            where usage.bucket = any(v_buckets) and usage.bucket = locked_rows.bucket
                and usage.user_id = locked_rows.user_id and usage.billing_period = locked_rows.billing_period
            returning usage.bucket, usage.user_id, usage.billing_period, locked_rows.message_count, usage."limit"
        ),
        reset_parts as (
            update headroom.usage_parts as parts
            set used = 0, updated_at = headroom.now(), window_opened_at = null, window_ends_at = null,
                window_used = null, window_held = null
            from locked_rows
            where parts.bucket = any(v_buckets) and parts.bucket = locked_rows.bucket
                and parts.user_id = locked_rows.user_id and parts.billing_period = locked_rows.billing_period
        )
        -- This does what headroom.record_change does, in one statement for all rows.
        insert into headroom.audit_log (bucket, at, user_id, billing_period, action, before, after, reason, actor)
        select
            reset_rows.bucket, headroom.now(), reset_rows.user_id, reset_rows.billing_period, 'reset_period',
            headroom.usage_record(reset_rows.billing_period, reset_rows.message_count, reset_rows."limit"),
            headroom.usage_record(reset_rows.billing_period, 0, reset_rows."limit"),
            nullif(current_setting('headroom.reason', true), ''), headroom.actor()
        from reset_rows;
        get diagnostics v_bucket_rows = row_count;
        v_rows := v_rows + v_bucket_rows;
    end loop;
    return v_rows;
end
$$;
alter function public.reset_billing_period(text) owner to headroom_owner;
