-- What became of a billing event, and what its user has now by these terms.
create or replace function headroom.billing_answer(
    p_outcome text, p_user_id uuid, p_problem text, p_terms headroom.terms
) returns jsonb
    language sql stable parallel safe
    return jsonb_strip_nulls(jsonb_build_object('outcome', p_outcome, 'user', p_user_id, 'problem', p_problem)) || case
        when (p_terms).is_known then jsonb_strip_nulls(jsonb_build_object(
            'plan', (p_terms).plan,
            'state', (p_terms).state,
            'access', (p_terms).lapse is null,
            'reason', (p_terms).lapse,
            'expires', headroom.instant_text((p_terms).expires_at),
            'previous_plan', (p_terms).previous_plan
        ))
        else '{}'
    end;
