-- Returns what only an answer to USAGE shows, of the store's subscription that gives p_plan until p_expires_at.
-- p_renews is null if the plan comes from set_plan or from a first message.
--
-- If several subscriptions have the plan, the one with that end is shown. LIMIT keeps this an index scan of one user:
-- for a join without it the planner may read the whole table.
create or replace function headroom.subscription_details(
    p_user_id uuid, p_state text, p_plan text, p_expires_at timestamptz, p_renews boolean
) returns headroom.subscription_details
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket constant smallint := headroom.bucket_of(p_user_id);
    v_subscription headroom.subscriptions;
    v_details headroom.subscription_details;
begin
    if p_renews is not null then
        select subscription.* into v_subscription
        from headroom.subscriptions as subscription
        where subscription.bucket = v_bucket and subscription.user_id = p_user_id
            and subscription.original_transaction_id not in ('operator', 'first message')
            and subscription.plan = p_plan
        order by
            (subscription.expires_at is not distinct from p_expires_at) desc,
            coalesce(subscription.expires_at, 'infinity') desc, subscription.original_transaction_id desc
        limit 1;
    end if;
    if p_renews and p_state = 'active' then
        v_details.renews_at := v_subscription.expires_at;
        v_details.next_plan := nullif(v_subscription.next_plan, p_plan);
    end if;
    v_details.price := v_subscription.price;
    v_details.currency := v_subscription.currency;
    v_details.manage := headroom.manage_address(v_subscription.store);
    return v_details;
end
$$;
