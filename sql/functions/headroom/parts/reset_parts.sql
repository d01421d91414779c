-- Sets the counts of a model and of a member to 0 in the named period of a user, or in the open one, and closes their
-- windows if it is the open one. The period 'window' is the window alone. What is held stays held. Raises no_data_found
-- if the plan of that period has no such limit. p_entitlement: the user's. The caller has locked the subscriber. Locks
-- the usage row of the open period.
create or replace function headroom.reset_parts(
    p_user_id uuid, p_billing_period text, p_entitlement headroom.entitlement, p_model text, p_member uuid
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_period constant text := coalesce(nullif(p_billing_period, 'window'), p_entitlement.billing_period);
    v_plan text := p_entitlement.plan;
    v_limit headroom.plan_limits;
    v_kind text;
    v_name text;
    -- What the audit log records of the part. The id of a member is not recorded (headroom.record_manual_change).
    v_record jsonb;
    v_before integer;
    v_window bigint;
    -- It is a variable, because Citus sends no UPDATE that calls nextval.
    v_generation bigint;
begin
    perform headroom.lock_usage(p_user_id, p_entitlement.billing_period);
    if v_period <> p_entitlement.billing_period then
        select usage.plan into v_plan from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period = v_period;
    end if;
    for v_kind, v_name in
        select named.kind, named.name from (values ('model', p_model), ('member', p_member::text)) as named (kind, name)
        where named.name is not null
    loop
        v_limit := headroom.plan_limit(v_plan, v_kind, v_name);
        if v_limit.plan is null then
            raise exception 'user % has no limit for the % % in period %', p_user_id, v_kind, quote_literal(v_name),
                quote_literal(v_period)
                using errcode = 'no_data_found',
                    hint = 'select kind, name from headroom.plan_limits where plan = … lists the limits of a plan.';
        end if;
        if v_kind = 'model' then
            v_name := v_limit.name;
        end if;
        v_window := case
            when v_period = p_entitlement.billing_period
                then headroom.close_part_windows(p_user_id, v_kind, v_name)
        end;
        v_before := null;
        if p_billing_period is distinct from 'window' then
            select parts.used into v_before from headroom.usage_parts as parts
            where parts.bucket = headroom.bucket_of(p_user_id) and parts.user_id = p_user_id
                and parts.billing_period = v_period and parts.kind = v_kind and parts.name = v_name;
            -- A message that is released later is not taken off the new count.
            v_generation := headroom.next_generation();
            update headroom.usage_parts set used = 0, generation = v_generation, updated_at = headroom.now()
            where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = v_period
                and kind = v_kind and name = v_name;
        end if;
        if v_before is not null or v_window is not null then
            v_record := jsonb_build_object(
                'period', v_period, 'kind', v_kind, 'name', case when v_kind = 'model' then v_name end
            );
            perform headroom.record_change(
                p_user_id, v_period, 'reset',
                jsonb_strip_nulls(v_record || jsonb_build_object('used', v_before, 'window_used', v_window)),
                jsonb_strip_nulls(v_record || jsonb_build_object('used', v_before * 0, 'window_used', v_window * 0))
            );
        end if;
    end loop;
end
$$;
