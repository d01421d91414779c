-- Writes the counts and limits of imported rows, with their entries of the audit log, and the usage rows that come with
-- the plans of new users, as headroom.apply_entitlement writes them. A count is added to the present one: the caller
-- has judged whether it may be. The caller has locked the subscribers. Locks the usage rows in ascending order.
--
-- p_rows is ascending by user, each once, and all of one bucket. p_periods: the period of each row. p_is_first: whether
-- headroom.write_imported_plans has written the user's plan. p_unknown_users_policy: trial, free or deny. The counts of
-- models and members are written by headroom.write_imported_parts.
create or replace function headroom.write_imported_usage(
    p_bucket smallint, p_rows headroom.import_row[], p_periods text[], p_is_first boolean[],
    p_unknown_users_policy text
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_users constant uuid[] := array(select given.user_id from unnest(p_rows) as given);
    v_entitlements constant headroom.entitlement[] := array(
        select derived from headroom.entitlements(p_bucket, v_users, v_now, p_unknown_users_policy) as derived
    );
    -- These say whether a row has a count or a limit, and whether its period is the open one. A row about a model or a
    -- member needs the period's usage row, too, and adds nothing to it.
    v_counts constant boolean[] := array(select given.used > 0 or given.has_limit from unnest(p_rows) as given);
    v_used constant integer[] := array(
        select case when given.part_kind is null then given.used else 0 end from unnest(p_rows) as given
    );
    v_is_open constant boolean[] := array(
        select p_periods[derived.ordinality] = derived.billing_period
        from unnest(v_entitlements) with ordinality as derived
        order by derived.ordinality
    );
    -- These are the present usage rows; null where there is none.
    v_generations bigint[];
    v_present_counts integer[];
    v_held integer[];
    v_present_limits integer[];
    -- These belong to the rows to write.
    v_limits integer[];
    v_places bigint[];
begin
    perform headroom.detach_balances(derived.user_id, v_now)
    from unnest(v_entitlements) as derived
    where derived.has_balances;
    -- The open period's row guards the counts of models and members.
    perform headroom.lock_usage_rows(
        p_bucket, array_agg(given.user_id order by given.ordinality),
        array_agg(
            case
                when given.part_kind is null then p_periods[given.ordinality]
                else (v_entitlements[given.ordinality]).billing_period
            end order by given.ordinality
        ), v_now
    )
    from unnest(p_rows) with ordinality as given
    where v_counts[given.ordinality];
    select
        array_agg(usage.generation order by request.place), array_agg(usage.message_count order by request.place),
        array_agg(usage.held order by request.place), array_agg(usage."limit" order by request.place),
        array_agg(case
            when (p_rows[request.place]).has_limit then (p_rows[request.place])."limit"
            when v_is_open[request.place] then headroom.effective_limit(
                usage.plan, usage.plan_limit, usage."limit", usage.granted, (v_entitlements[request.place]).allowance
            )
            when usage.generation is not null then usage."limit"
            when headroom.is_period_of(
                p_periods[request.place], (v_entitlements[request.place]).plan, (v_entitlements[request.place]).cycle
            ) then (v_entitlements[request.place]).allowance
        end order by request.place)
    into v_generations, v_present_counts, v_held, v_present_limits, v_limits
    from unnest(v_users, p_periods) with ordinality as request (user_id, billing_period, place)
    left join lateral (
        select one.generation, one.message_count, one.held, one."limit", one.plan, one.plan_limit, one.granted
        from public.message_usage as one
        where one.bucket = p_bucket and one.user_id = request.user_id and one.billing_period = request.billing_period
        limit 1
    ) as usage on true;

    v_places := array(
        select derived.ordinality from unnest(v_entitlements) with ordinality as derived
        where v_counts[derived.ordinality] and v_is_open[derived.ordinality]
            or p_is_first[derived.ordinality] and derived.denial_reason is null and derived.allowance is distinct from 0
        order by derived.ordinality
    );
    if v_places <> '{}' then
        perform headroom.write_usage_rows(
            p_bucket,
            array(select v_entitlements[one.place] from unnest(v_places) as one (place) order by one.place),
            array(
                select case
                    when v_is_open[one.place] then coalesce(v_generations[one.place], headroom.next_generation())
                    else headroom.next_generation()
                end
                from unnest(v_places) as one (place) order by one.place
            ),
            array(
                select case when v_is_open[one.place] then least(
                    coalesce(v_present_counts[one.place], 0)::bigint + v_used[one.place], 2147483647
                )::integer else 0 end
                from unnest(v_places) as one (place) order by one.place
            ),
            array(
                select case when v_is_open[one.place] then coalesce(v_held[one.place], 0) else 0 end
                from unnest(v_places) as one (place) order by one.place
            ),
            array(select 0 from unnest(v_places)),
            array(
                select case
                    when v_is_open[one.place] then v_limits[one.place] else (v_entitlements[one.place]).allowance
                end
                from unnest(v_places) as one (place) order by one.place
            ),
            -- The next message decides whether another user's row can be used.
            array(
                select case
                    when p_is_first[one.place] and (v_entitlements[one.place]).denial_reason is null
                        then (v_entitlements[one.place]).usable_until
                    else '-infinity'
                end
                from unnest(v_places) as one (place) order by one.place
            ),
            null
        );
    end if;

    insert into public.message_usage as usage (
        bucket, user_id, billing_period, message_count, "limit", plan, plan_limit, state, updated_at
    )
    select
        p_bucket, given.user_id, given.billing_period, given.used, v_limits[given.place],
        case when given.is_of_plan then given.plan end,
        case when given.is_of_plan then given.allowance end,
        case when given.is_of_plan then
            case given.cycle when 'trial' then 'trial' when 'lifetime' then 'free' else 'active' end
        end,
        v_now
    from (
        select
            derived.user_id, p_periods[derived.ordinality] as billing_period, v_used[derived.ordinality] as used,
            derived.ordinality as place, derived.plan, derived.cycle, derived.allowance,
            headroom.is_period_of(p_periods[derived.ordinality], derived.plan, derived.cycle) as is_of_plan
        from unnest(v_entitlements) with ordinality as derived
        where v_counts[derived.ordinality] and not v_is_open[derived.ordinality]
    ) as given
    -- There are no parameters from here on: Citus cannot pass them to the machine that has the rows.
    on conflict (user_id, billing_period) do update
    set message_count = least(usage.message_count::bigint + excluded.message_count, 2147483647),
        "limit" = excluded."limit", updated_at = excluded.updated_at;

    insert into headroom.audit_log (bucket, at, user_id, billing_period, action, before, after, reason, actor)
    select
        p_bucket, v_now, given.user_id, p_periods[given.ordinality], 'import',
        headroom.usage_record(
            p_periods[given.ordinality], v_present_counts[given.ordinality], v_present_limits[given.ordinality]
        ),
        headroom.usage_record(
            p_periods[given.ordinality],
            least(coalesce(v_present_counts[given.ordinality], 0)::bigint + given.used, 2147483647)::integer,
            v_limits[given.ordinality]
        ),
        nullif(current_setting('headroom.reason', true), ''), headroom.actor()
    from unnest(p_rows) with ordinality as given
    where v_counts[given.ordinality] and given.part_kind is null;
    perform headroom.write_imported_parts(
        p_bucket, p_rows, p_periods, array(
            select derived.plan from unnest(v_entitlements) with ordinality as derived order by derived.ordinality
        )
    );
    perform headroom.attach_balances(derived.user_id, derived.billing_period, v_now)
    from unnest(v_entitlements) as derived
    where derived.has_balances;
end
$$;
