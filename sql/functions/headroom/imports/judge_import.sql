-- Returns the outcome that each row of an import is to have, by the users as they are now; the rows are in the order of
-- p_rows. Locks nothing. outcome:
--
-- imported: the row is imported. imported_before: this user and period were imported before. counted: Headroom counts
-- the user already, in this period or by a plan that the first message began; p_adds imports such rows, too. later: the
-- period has not begun for the user. nothing: the row has nothing that the user does not have. without_limit: the plan
-- does not count the row's model or member; the row's plan is imported.
--
-- billing_period: the row's, or the one that will be open. sets_plan: whether the user gets the row's plan. A plan that
-- an operator, an import or a store has set stays. keeps_plan: whether it is another one than the row's.
--
-- p_rows is ascending by user, each once, and all of one bucket. p_unknown_users_policy: trial, free or deny.
--
-- Each query is about one table, looks up each user in its order, and has an answer for some of them; the answers are
-- combined from arrays (docs/decisions/0026-sql-for-a-distributed-database.md).
create or replace function headroom.judge_import(
    p_bucket smallint, p_rows headroom.import_row[], p_adds boolean, p_unknown_users_policy text
) returns table (place bigint, outcome text, billing_period text, sets_plan boolean, keeps_plan boolean)
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_now constant timestamptz := headroom.now();
    v_users constant uuid[] := array(select given.user_id from unnest(p_rows) as given);
    -- These say for each user whether a plan stays, and whether the first message began one.
    v_is_set boolean[];
    v_is_begun boolean[];
    v_anchor_days integer[];
    -- These are the users whose plan does not follow from the row, and what they may send.
    v_others uuid[];
    v_entitlements headroom.entitlement[];
    -- These are the periods that will be open, and those of the rows.
    v_open text[];
    v_periods text[];
    v_is_imported boolean[];
    v_is_used boolean[];
    -- These are the names of the rows' models and members in headroom.usage_parts; null where none counts them.
    v_counters text[];
begin
    select
        array_agg(found.is_set order by request.place), array_agg(found.is_begun order by request.place)
    into v_is_set, v_is_begun
    from unnest(v_users) with ordinality as request (user_id, place)
    cross join lateral (
        select
            coalesce(bool_or(subscription.original_transaction_id <> 'first message'), false) as is_set,
            coalesce(bool_or(subscription.original_transaction_id = 'first message'), false) as is_begun
        from headroom.subscriptions as subscription
        where subscription.bucket = p_bucket and subscription.user_id = request.user_id
    ) as found;
    v_anchor_days := array(
        select found.anchor_day from unnest(v_users) with ordinality as request (user_id, place)
        left join lateral (
            select subscriber.anchor_day::integer as anchor_day from headroom.subscribers as subscriber
            where subscriber.bucket = p_bucket and subscriber.user_id = request.user_id
            limit 1
        ) as found on true
        order by request.place
    );
    v_others := array(
        select given.user_id from unnest(p_rows) with ordinality as given
        where given.plan is null or v_is_set[given.ordinality]
        order by given.ordinality
    );
    if v_others <> '{}' then
        v_entitlements := array(
            select derived from headroom.entitlements(p_bucket, v_others, v_now, p_unknown_users_policy) as derived
        );
    end if;
    v_open := array(
        select case
            when plans.plan is null then (v_entitlements[width_bucket(given.user_id, v_others)]).billing_period
            else coalesce(
                headroom.period_label(plans.cycle, headroom.period_day(
                    plans.cycle, v_now, coalesce(given.anchor_day, v_anchor_days[given.ordinality], 1),
                    coalesce(plans.time_zone, 'UTC')
                )),
                plans.plan
            )
        end
        from unnest(p_rows) with ordinality as given
        left join headroom.plans as plans on plans.plan = given.plan and not v_is_set[given.ordinality]
        order by given.ordinality
    );
    v_periods := array(
        select coalesce(given.billing_period, v_open[given.ordinality]) from unnest(p_rows) with ordinality as given
        order by given.ordinality
    );
    v_is_imported := array(
        select found.is_found is not null
        from unnest(v_users, v_periods) with ordinality as request (user_id, billing_period, place)
        left join lateral (
            select true as is_found from headroom.audit_log as entry
            where entry.bucket = p_bucket and entry.user_id = request.user_id and entry.action = 'import'
                and entry.billing_period = request.billing_period and not entry.after ? 'kind'
            limit 1
        ) as found on true
        order by request.place
    );
    v_is_used := array(
        select found.is_found is not null
        from unnest(v_users, v_periods) with ordinality as request (user_id, billing_period, place)
        left join lateral (
            select true as is_found from public.message_usage as usage
            where usage.bucket = p_bucket and usage.user_id = request.user_id
                and usage.billing_period = request.billing_period
                and not headroom.is_unused_usage_row(
                    usage.user_id, usage.billing_period, usage.message_count, usage.held, usage.released,
                    usage.granted, usage.plan, usage.plan_limit, usage."limit" - coalesce(usage.extra, 0),
                    usage.window_ends_at
                )
            limit 1
        ) as found on true
        order by request.place
    );
    if exists (select from unnest(p_rows) as given where given.part_kind is not null) then
        v_counters := array(
            select case limits.kind when 'member' then given.part_name else limits.name end
            from unnest(p_rows) with ordinality as given
            cross join lateral headroom.plan_limit(
                case
                    when given.plan is not null and not v_is_set[given.ordinality] then given.plan
                    else (v_entitlements[width_bucket(given.user_id, v_others)]).plan
                end, given.part_kind, given.part_name
            ) as limits
            order by given.ordinality
        );
        -- Several models may share a count, so that the first import of one of them does not leave out the others.
        select
            array_agg(case
                when given.part_kind is null then v_is_imported[given.ordinality]
                else coalesce(given.part_name = any(found.imported), false)
            end order by given.ordinality),
            array_agg(case
                when given.part_kind is null then v_is_used[given.ordinality]
                else coalesce(found.taken > 0 and found.imported is null, false)
            end order by given.ordinality)
        into v_is_imported, v_is_used
        from unnest(p_rows) with ordinality as given
        left join lateral (
            select parts.imported, parts.used::bigint + parts.held as taken from headroom.usage_parts as parts
            where parts.bucket = p_bucket and parts.user_id = given.user_id
                and parts.billing_period = v_periods[given.ordinality] and parts.kind = given.part_kind
                and parts.name = v_counters[given.ordinality]
            limit 1
        ) as found on true;
    end if;
    return query
    select
        judged.ordinality,
        case
            when judged.is_imported then 'imported_before'
            when not judged.sets_plan and judged.used = 0 and not judged.has_limit then 'nothing'
            when judged.is_later then 'later'
            when judged.is_counted and not p_adds then 'counted'
            when judged.part_kind is not null and v_counters[judged.ordinality] is null then 'without_limit'
            else 'imported'
        end,
        v_periods[judged.ordinality],
        judged.sets_plan,
        not judged.is_imported and judged.plan is not null and not judged.sets_plan
            and judged.plan is distinct from (v_entitlements[width_bucket(judged.user_id, v_others)]).plan
    from (
        select
            given.*, v_is_imported[given.ordinality] as is_imported,
            given.plan is not null and not v_is_set[given.ordinality] as sets_plan,
            case
                -- 2026-03.10 is later than 2026-03.9.
                when (
                    split_part(given.billing_period, '.', 1), length(given.billing_period), given.billing_period
                ) > (
                    split_part(v_open[given.ordinality], '.', 1), length(v_open[given.ordinality]),
                    v_open[given.ordinality]
                ) then coalesce(
                    headroom.label_cycle(given.billing_period) = headroom.label_cycle(v_open[given.ordinality]), false
                )
                else false
            end as is_later,
            v_is_used[given.ordinality] or given.plan is not null and v_is_begun[given.ordinality] as is_counted
        from unnest(p_rows) with ordinality as given
    ) as judged
    order by judged.ordinality;
end
$$;
