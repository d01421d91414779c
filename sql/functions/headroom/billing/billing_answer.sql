-- Returns the answer to a billing event as JSON: its outcome, and the plan and access that its user has by
-- p_entitlement.
create or replace function headroom.billing_answer(
    p_outcome text, p_user_id uuid, p_problem text, p_entitlement headroom.entitlement
) returns jsonb
    language sql stable parallel safe
    return jsonb_strip_nulls(jsonb_build_object('outcome', p_outcome, 'user', p_user_id, 'problem', p_problem)) || case
        when (p_entitlement).has_subscription then jsonb_strip_nulls(jsonb_build_object(
            'plan', (p_entitlement).plan,
            'state', (p_entitlement).state,
            'access', (p_entitlement).denial_reason is null,
            'reason', (p_entitlement).denial_reason,
            'expires', headroom.instant_text((p_entitlement).expires_at),
            'previous_plan', (p_entitlement).previous_plan
        ))
        else '{}'
    end;
