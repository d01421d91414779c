-- Returns what only an answer to USAGE shows of the store's subscription that gives p_plan until p_expires_at.
-- renews_at: when the store renews it; null if it does not. next_plan: the plan after that; null if p_plan stays. price
-- and currency: the last payment. There is no row if p_renews is null, because the plan then comes from set_plan or
-- from a first message.
--
-- If several subscriptions have the plan, the one with that end is shown. LIMIT keeps this an index scan of one user:
-- for a join without it the planner may read the whole table.
create or replace function headroom.subscription_details(
    p_user_id uuid, p_state text, p_plan text, p_expires_at timestamptz, p_renews boolean
) returns table (renews_at timestamptz, next_plan text, price text, currency text, store text)
    language plpgsql stable rows 1 set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_bucket constant smallint := headroom.bucket_of(p_user_id);
begin
    if p_renews is null then
        return;
    end if;
    return query
    select
        case when p_renews and p_state = 'active' then subscription.expires_at end as renews_at,
        case when p_renews and p_state = 'active' then nullif(subscription.next_plan, p_plan) end as next_plan,
        subscription.price, subscription.currency, subscription.store
    from headroom.subscriptions as subscription
    where subscription.bucket = v_bucket and subscription.user_id = p_user_id
        and subscription.original_transaction_id not in ('operator', 'first message')
        and subscription.plan = p_plan
    order by
        (subscription.expires_at is not distinct from p_expires_at) desc,
        coalesce(subscription.expires_at, 'infinity') desc, subscription.original_transaction_id desc
    limit 1;
end
$$;
