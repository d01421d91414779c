-- Imports rows of one bucket, or only judges them if p_checks is true. p_rows is ascending by user, each once. Returns
-- a row for each: its "ordinal", and its outcome (headroom.judge_import). Creates the subscribers, locks them in
-- ascending order, then the usage rows.
--
-- Users without any data, nearly all in an import, are written in sets. Any other gets the plan by public.set_plan.
create or replace function headroom.import_bucket(
    p_bucket smallint, p_rows headroom.import_row[], p_adds boolean, p_checks boolean
) returns table (ordinal integer, outcome text, keeps_plan boolean)
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_policy constant text := headroom.unknown_users_policy();
    v_users constant uuid[] := array(select given.user_id from unnest(p_rows) as given);
    v_outcomes text[];
    v_periods text[];
    v_sets_plan boolean[];
    v_keeps_plan boolean[];
    -- These are the users with data.
    v_known uuid[];
    -- These are the places of rows that are imported, and whether the user is new and gets a plan.
    v_places bigint[];
    v_is_first boolean[];
    v_row headroom.import_row;
begin
    if not p_checks then
        -- This locks rows that exist, too, in the same order; the condition keeps it from writing them.
        insert into headroom.subscribers as subscriber (bucket, user_id)
        select p_bucket, given.user_id from unnest(v_users) with ordinality as given (user_id, place)
        order by given.place
        on conflict (bucket, user_id) do update set anchor_day = excluded.anchor_day where false;
    end if;
    select
        array_agg(judged.outcome order by judged.place), array_agg(judged.billing_period order by judged.place),
        array_agg(judged.sets_plan order by judged.place), array_agg(judged.keeps_plan order by judged.place)
    into v_outcomes, v_periods, v_sets_plan, v_keeps_plan
    from headroom.judge_import(p_bucket, p_rows, p_adds, v_policy) as judged;
    if not p_checks then
        v_known := headroom.users_with_data(p_bucket, v_users);
        select
            array_agg(given.place order by given.place),
            array_agg(v_sets_plan[given.place] and v_known[width_bucket(given.user_id, v_known)]
                is distinct from given.user_id order by given.place)
        into v_places, v_is_first
        from unnest(v_users) with ordinality as given (user_id, place)
        where v_outcomes[given.place] = 'imported'
            or v_outcomes[given.place] = 'without_limit' and v_sets_plan[given.place];
        if v_places <> '{}' then
            perform headroom.write_imported_plans(p_bucket, array(
                select p_rows[imported.place] from unnest(v_places, v_is_first) as imported (place, is_first)
                where imported.is_first
                order by imported.place
            ));
            for v_row in
                select (p_rows[imported.place]).* from unnest(v_places, v_is_first) as imported (place, is_first)
                where v_sets_plan[imported.place] and not imported.is_first
                order by imported.place
            loop
                perform public.set_plan(
                    v_row.user_id, v_row.plan, v_row.state, v_row.started_at, v_row.expires_at, v_row.grace_until,
                    v_row.anchor_day
                );
            end loop;
            perform headroom.write_imported_usage(
                p_bucket,
                array(select p_rows[imported.place] from unnest(v_places) as imported (place) order by imported.place),
                array(
                    select v_periods[imported.place] from unnest(v_places) as imported (place) order by imported.place
                ),
                v_is_first, v_policy
            );
        end if;
    end if;
    return query
    select given.ordinal, v_outcomes[given.ordinality], v_keeps_plan[given.ordinality]
    from unnest(p_rows) with ordinality as given
    order by given.ordinality;
end
$$;
