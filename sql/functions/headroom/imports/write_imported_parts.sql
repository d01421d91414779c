-- Adds the counts of imported rows to those of models and members, with entries of the audit log. A row about all
-- messages has no effect, nor has one that the user's plan does not limit. The caller has judged whether counts may be
-- added, and has locked the usage rows of the open periods.
--
-- p_rows is ascending by user, each once, and all of one bucket. p_periods, p_plans: the period of each row, and the
-- plan of its user.
create or replace function headroom.write_imported_parts(
    p_bucket smallint, p_rows headroom.import_row[], p_periods text[], p_plans text[]
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    -- These belong to the rows that have an effect. The generations are a variable, because Citus sends no INSERT that
    -- calls nextval.
    v_places bigint[];
    v_names text[];
    v_generations bigint[];
    v_limits integer[];
    v_window_limits integer[];
    v_present integer[];
begin
    select
        array_agg(given.ordinality order by given.ordinality),
        array_agg(case limits.kind when 'member' then given.part_name else limits.name end order by given.ordinality),
        array_agg(headroom.next_generation()), array_agg(limits.allowance order by given.ordinality),
        array_agg(limits.window_messages order by given.ordinality)
    into v_places, v_names, v_generations, v_limits, v_window_limits
    from unnest(p_rows) with ordinality as given
    cross join lateral headroom.plan_limit(p_plans[given.ordinality], given.part_kind, given.part_name) as limits
    where given.part_kind is not null and given.used > 0 and limits.plan is not null;
    if v_places is null then
        return;
    end if;
    v_present := array(
        select found.used from unnest(v_places, v_names) with ordinality as request (place, name, ordinal)
        left join lateral (
            select parts.used from headroom.usage_parts as parts
            where parts.bucket = p_bucket and parts.user_id = (p_rows[request.place]).user_id
                and parts.billing_period = p_periods[request.place] and parts.kind = (p_rows[request.place]).part_kind
                and parts.name = request.name
            limit 1
        ) as found on true
        order by request.ordinal
    );
    insert into headroom.usage_parts as parts (
        bucket, user_id, billing_period, kind, name, generation, updated_at, used, "limit", window_limit, imported
    )
    select
        p_bucket, given.user_id, p_periods[given.ordinality], given.part_kind, written.name, written.generation, v_now,
        given.used, written."limit", written.window_limit, array[given.part_name]
    from unnest(v_places, v_names, v_generations, v_limits, v_window_limits)
        as written (place, name, generation, "limit", window_limit)
    join unnest(p_rows) with ordinality as given on given.ordinality = written.place
    -- There are no parameters from here on: Citus cannot pass them to the machine that has the rows.
    on conflict (bucket, user_id, billing_period, kind, name) do update
    set used = least(parts.used::bigint + excluded.used, 2147483647), updated_at = excluded.updated_at,
        imported = parts.imported || excluded.imported;
    insert into headroom.audit_log (bucket, at, user_id, billing_period, action, before, after, reason, actor)
    select
        p_bucket, v_now, given.user_id, p_periods[given.ordinality], 'import',
        record.part || jsonb_build_object('used', written.present),
        record.part || jsonb_build_object(
            'used', least(coalesce(written.present, 0)::bigint + given.used, 2147483647)
        ),
        nullif(current_setting('headroom.reason', true), ''), headroom.actor()
    from unnest(v_places, v_present) as written (place, present)
    join unnest(p_rows) with ordinality as given on given.ordinality = written.place
    -- The id of a member is not recorded (headroom.record_manual_change).
    cross join lateral (
        select jsonb_strip_nulls(jsonb_build_object(
            'period', p_periods[given.ordinality], 'kind', given.part_kind,
            'name', case given.part_kind when 'model' then given.part_name end
        )) as part
    ) as record;
end
$$;
