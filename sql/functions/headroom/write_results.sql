-- Writes what became of earlier events that another one has made apply, or has made another user's.
create or replace function headroom.write_results(p_results jsonb) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    update headroom.billing_events as events
    set outcome = written.outcome, user_id = written."user", lacks = written.lacks, problem = written.problem,
        lacks_product = written.lacks_product,
        applied_at = case
            when written.outcome = 'failed' then null else coalesce(events.applied_at, headroom.now())
        end
    from jsonb_to_recordset(p_results) as written (
        source text, id text, outcome text, "user" uuid, lacks text, lacks_product text, problem text
    )
    where events.source = written.source and events.id = written.id;
end
$$;
revoke all on function headroom.write_results(jsonb) from public;
grant execute on function headroom.write_results(jsonb) to headroom_service;
