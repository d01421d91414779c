-- Imports rows of a file and advances the import in the same transaction. Returns a row for each of p_rows: its outcome
-- (headroom.judge_import), and whether its user has kept another plan than the row's. Raises object_in_use if p_from is
-- not where the import is: another session continues it, or this batch is committed already.
--
-- p_from, p_through: the numbers of rows of the file that were done before the batch, and are after it. p_rows: the
-- valid rows, in the order of the file. p_adds: whether counts are added to what Headroom has counted. p_checks:
-- changes nothing. Tiers that come with the counts cause no notification.
--
-- Parts are imported one after the other, each of one bucket and with one row for a user: the users of a part are
-- locked together.
create or replace function headroom.import_batch(
    p_digest bytea, p_adds boolean, p_from bigint, p_through bigint, p_rows headroom.import_row[], p_checks boolean
) returns table (ordinal integer, outcome text, keeps_plan boolean)
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_done bigint;
    v_file text;
    v_bucket smallint;
    v_places bigint[];
    v_imported bigint := 0;
    v_imported_before bigint := 0;
    v_counted bigint := 0;
    v_later bigint := 0;
    v_without_limit bigint := 0;
    v_plans_kept bigint := 0;
    v_messages bigint := 0;
    v_imported_users uuid[] := '{}';
begin
    perform headroom.await_division();
    if not p_checks then
        select one.done, one.file into v_done, v_file from headroom.imports as one
        where one.digest = p_digest and one.adds = p_adds
        for update;
        if v_done is null or v_done is distinct from p_from then
            raise exception 'row % of the file is not the next one: % are done', p_from + 1, coalesce(v_done, 0)
                using errcode = 'object_in_use',
                    hint = 'Another session imports this file. Try again when it has ended.';
        end if;
        perform set_config('headroom.reason', 'import of ' || v_file, true);
    end if;
    for v_bucket, v_places in
        select given.bucket, array_agg(given.place order by given.user_id)
        from (
            select
                one.ordinality as place, one.user_id, headroom.bucket_of(one.user_id) as bucket,
                row_number() over (partition by one.user_id order by one.ordinality) as round
            from unnest(p_rows) with ordinality as one
        ) as given
        group by given.round, given.bucket
        order by given.round, given.bucket
    loop
        for ordinal, outcome, keeps_plan in
            select done.ordinal, done.outcome, done.keeps_plan
            from headroom.import_bucket(
                v_bucket, array(
                    select p_rows[part.place] from unnest(v_places) with ordinality as part (place, position)
                    order by part.position
                ), p_adds, p_checks
            ) as done
        loop
            v_imported := v_imported + (outcome = 'imported')::integer;
            v_imported_before := v_imported_before + (outcome in ('imported_before', 'nothing'))::integer;
            v_counted := v_counted + (outcome = 'counted')::integer;
            v_later := v_later + (outcome = 'later')::integer;
            v_without_limit := v_without_limit + (outcome = 'without_limit')::integer;
            v_plans_kept := v_plans_kept + keeps_plan::integer;
            if outcome = 'imported' then
                v_messages := v_messages + (p_rows[ordinal]).used;
                v_imported_users := v_imported_users || (p_rows[ordinal]).user_id;
            end if;
            return next;
        end loop;
    end loop;
    if not p_checks then
        perform headroom.record_notifications(v_imported_users, 's');
        update headroom.imports as one
        set done = p_through, imported = one.imported + v_imported,
            imported_before = one.imported_before + v_imported_before, counted = one.counted + v_counted,
            later = one.later + v_later, without_limit = one.without_limit + v_without_limit,
            plans_kept = one.plans_kept + v_plans_kept, messages = one.messages + v_messages,
            finished_at = case when p_through = one.records then headroom.now() end
        where one.digest = p_digest and one.adds = p_adds;
    end if;
end
$$;
