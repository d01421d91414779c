-- Adds the counts of imported rows to those of users' models and members, with entries of the audit log. Other rows and
-- those that a user's plan does not limit, have no effect. The caller has judged whether counts may be added, and has
-- locked the usage rows of the open periods.
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
    v_part record;
    v_used integer;
    v_before integer;
    -- What the audit log records of the part. The id of a member is not recorded (headroom.record_manual_change).
    v_record jsonb;
    -- It is a variable, because Citus sends no INSERT that calls nextval.
    v_generation bigint;
begin
    for v_part in
        select
            given.user_id, given.used, given.part_kind as kind, given.part_name,
            case limits.kind when 'member' then given.part_name else limits.name end as name,
            p_periods[given.ordinality] as billing_period, limits.allowance, limits.window_messages
        from unnest(p_rows) with ordinality as given
        cross join lateral headroom.plan_limit(
            p_plans[given.ordinality], given.part_kind, given.part_name
        ) as limits
        where limits.plan is not null and given.used > 0
        order by given.ordinality
    loop
        select parts.used into v_before from headroom.usage_parts as parts
        where parts.bucket = p_bucket and parts.user_id = v_part.user_id
            and parts.billing_period = v_part.billing_period and parts.kind = v_part.kind and parts.name = v_part.name;
        v_used := least(coalesce(v_before, 0)::bigint + v_part.used, 2147483647);
        v_generation := headroom.next_generation();
        insert into headroom.usage_parts as parts (
            bucket, user_id, billing_period, kind, name, generation, updated_at, used, "limit", window_limit, imported
        ) values (
            p_bucket, v_part.user_id, v_part.billing_period, v_part.kind, v_part.name, v_generation, v_now, v_used,
            v_part.allowance, v_part.window_messages, array[v_part.part_name]
        )
        on conflict (bucket, user_id, billing_period, kind, name) do update
        set used = excluded.used, updated_at = excluded.updated_at, imported = parts.imported || excluded.imported;
        v_record := jsonb_strip_nulls(jsonb_build_object(
            'period', v_part.billing_period, 'kind', v_part.kind,
            'name', case when v_part.kind = 'model' then v_part.part_name end
        ));
        perform headroom.record_change(
            v_part.user_id, v_part.billing_period, 'import', v_record || jsonb_build_object('used', v_before),
            v_record || jsonb_build_object('used', v_used)
        );
    end loop;
end
$$;
