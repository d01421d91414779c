-- Returns the usage snapshot of a billing period other than the current one; no row without a usage row. The plan is
-- the one with which the row was last written. The snapshot shows the period as over, even if it never resets, such as
-- a trial that became a subscription.
create or replace function headroom.past_snapshot(p_user_id uuid, p_billing_period text)
    returns setof headroom.usage_snapshot
    language plpgsql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
declare
    v_snapshot headroom.usage_snapshot;
begin
    select (usage.snapshot).* into v_snapshot from headroom.row_snapshots as usage
    where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
        and usage.billing_period = p_billing_period;
    if not found then
        return;
    end if;
    if v_snapshot.extra is not null then
        -- The period can take no more from balances.
        select headroom.plain_limit(usage.message_count, usage.held, usage."limit", usage.extra, usage.usable_count)
        into v_snapshot."limit"
        from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period = p_billing_period;
        v_snapshot.extra := null;
        v_snapshot.extra_expires := null;
    end if;
    v_snapshot.held := headroom.held_messages(p_user_id, p_billing_period, v_snapshot.held);
    v_snapshot.window_opened_at := null;
    v_snapshot.window_ends_at := null;
    v_snapshot.window_used := null;
    v_snapshot.window_held := null;
    v_snapshot.window_limit := null;
    v_snapshot.resets_at := least(v_snapshot.resets_at, v_snapshot.observed_at);
    select revised.revision into v_snapshot.plan_revision from headroom.plan_revision as revised;
    return next v_snapshot;
end
$$;
