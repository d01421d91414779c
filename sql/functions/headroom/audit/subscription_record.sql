-- Returns what the audit log records of a user's plan and of one subscription. It is null if the user has neither.
-- p_subscription: a row of headroom.subscriptions as JSON; null, or all of its values, if there is no such row. A
-- parameter of the row's type would become that of a shard when Citus distributes the table.
create or replace function headroom.subscription_record(
    p_entitlement headroom.entitlement, p_anchor_day integer, p_previous_plan text, p_subscription jsonb
) returns jsonb
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_plan constant jsonb := headroom.plan_record(p_entitlement, p_anchor_day, p_previous_plan);
begin
    if p_subscription ->> 'original_transaction_id' is null then
        return v_plan;
    end if;
    return coalesce(v_plan, '{}') || jsonb_strip_nulls(jsonb_build_object(
        'transaction', p_subscription -> 'original_transaction_id',
        'bought', p_subscription -> 'plan',
        'product', p_subscription -> 'product',
        'paid_until', headroom.instant_text((p_subscription ->> 'expires_at')::timestamptz),
        'grace_until', headroom.instant_text((p_subscription ->> 'grace_until')::timestamptz),
        'billing_issue', headroom.instant_text((p_subscription ->> 'billing_issue_at')::timestamptz),
        'unsubscribed', headroom.instant_text((p_subscription ->> 'unsubscribed_at')::timestamptz),
        'revoked', headroom.instant_text((p_subscription ->> 'revoked_at')::timestamptz),
        'next_plan', p_subscription -> 'next_plan',
        'next_product', p_subscription -> 'next_product'
    ));
end
$$;
