-- What became of a billing event, and what its user has now.
create or replace function headroom.billing_answer(p_outcome text, p_user_id uuid, p_problem text) returns jsonb
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_terms headroom.terms;
begin
    if p_user_id is not null then
        v_terms := headroom.terms_of(p_user_id, headroom.now(), headroom.unknown_users());
    end if;
    if v_terms.is_known is not true then
        return jsonb_strip_nulls(jsonb_build_object('outcome', p_outcome, 'user', p_user_id, 'problem', p_problem));
    end if;
    return jsonb_strip_nulls(jsonb_build_object(
        'outcome', p_outcome,
        'user', p_user_id,
        'problem', p_problem,
        'plan', v_terms.plan,
        'state', v_terms.state,
        'access', v_terms.lapse is null,
        'reason', v_terms.lapse,
        'expires', headroom.instant_text(v_terms.expires_at),
        'previous_plan', v_terms.previous_plan
    ));
end
$$;
revoke all on function headroom.billing_answer(text, uuid, text) from public;
grant execute on function headroom.billing_answer(text, uuid, text) to headroom_service;
