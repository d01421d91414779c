-- Returns the allowances of a user's models and members in a billing period, models first; null is the open one. Of the
-- open period these are all models of the plan, also those without a message. Writes nothing.
create or replace function headroom.read_allowances(p_bucket smallint, p_user_id uuid, p_billing_period text)
    returns table (
        kind text, name text, label text, used integer, held integer, "limit" integer, tier text, window_limit integer,
        window_used integer, window_held integer, window_resets_at timestamptz, weight integer, fallback text
    )
    language plpgsql stable rows 16 set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_open constant headroom.entitlement
        := headroom.entitlement(p_user_id, headroom.now(), headroom.unknown_users_policy());
    v_names text[];
    v_members integer;
begin
    if p_billing_period <> v_open.billing_period then
        return query
        select
            parts.kind, parts.name, parts.label, parts.used, parts.held, parts."limit", parts.tier, parts.window_limit,
            parts.window_used, parts.window_held, parts.window_resets, parts.weight, parts.fallback
        from headroom.part_usage_rows as parts
        where parts.bucket = p_bucket and parts.user_id = p_user_id and parts.period = p_billing_period
        order by parts.kind = 'member', parts.name;
        return;
    end if;
    v_names := array(
        select parts.name from headroom.usage_parts as parts
        where parts.bucket = p_bucket and parts.user_id = p_user_id and parts.kind = 'member'
            and (parts.billing_period = v_open.billing_period or parts.window_ends_at > headroom.now())
        group by parts.name
        order by parts.name
    );
    v_members := cardinality(v_names);
    v_names := array(
        select limits.name from headroom.plan_limits as limits
        where limits.plan = v_open.plan and limits.kind = 'model'
        order by limits.name
    ) || v_names;
    return query
    select
        part.kind, part.name, case part.kind when 'model' then coalesce(part.label, part.name) end,
        part.used, part.held, part."limit",
        case
            when v_open.denial_reason is not null then 'blocked'
            else headroom.part_tier(
                part.used, part.held, part."limit", part.window_used, part.window_held, part.window_limit,
                plans.gentle_percent, plans.prominent_percent, plans.enforced
            )
        end,
        part.window_limit, case when part.window_limit is not null then coalesce(part.window_used, 0) end,
        case when part.window_limit is not null then coalesce(part.window_held, 0) end,
        case when part.window_limit is not null then part.window_ends_at end, part.weight, part.fallback
    from headroom.read_part_usages(
        p_user_id, v_open.plan, v_open.billing_period,
        array_fill('model'::text, array[cardinality(v_names) - v_members])
            || array_fill('member'::text, array[v_members]), v_names
    ) with ordinality as part
    left join headroom.plans as plans on plans.plan = v_open.plan
    where part.counter is not null
    order by part.ordinality;
end
$$;
