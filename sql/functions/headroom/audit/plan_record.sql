-- Returns what the audit log records of a user's plan: the inputs of the entitlement, and the anchor day; null without
-- a subscription.
create or replace function headroom.plan_record(
    p_entitlement headroom.entitlement, p_anchor_day integer, p_previous_plan text
) returns jsonb
    language sql stable
    return case when (p_entitlement).has_subscription then pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
        'plan', (p_entitlement).plan,
        'state', (p_entitlement).state,
        'started', case
            when not headroom.is_periodic((p_entitlement).cycle) then headroom.instant_text((p_entitlement).started_at)
        end,
        'expires', headroom.instant_text((p_entitlement).expires_at),
        'anchor', p_anchor_day,
        'previous_plan', p_previous_plan
    )) end;
