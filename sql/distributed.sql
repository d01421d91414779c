-- Changes what differs if Citus distributes the rows of users. It is applied after rights.sql, whenever anything was
-- applied, and does nothing on one machine.
do $$
declare
    v_function regprocedure;
begin
    if not headroom.is_distributed() then
        return;
    end if;
    -- The shards of message_usage are created with the rights of its owner, even when they move.
    grant create on schema public to headroom_owner;
    -- Citus plans a query for the machine of its bucket only if it knows the bucket's value.
    for v_function in
        select oid from pg_proc
        where pronamespace = 'headroom'::regnamespace and 'plan_cache_mode=force_generic_plan' = any(proconfig)
    loop
        execute format('alter function %s reset plan_cache_mode', v_function);
    end loop;
    -- Citus refuses a transaction in which two roles write copies of reference tables.
    alter function headroom.increment_revision() security invoker;
    grant update on headroom.plan_revision to headroom_operator, headroom_service;
    grant execute on function headroom.table_of_shard(text), headroom.is_first_copy()
        to headroom_operator, headroom_service;
    -- Citus replaces a view by its query, and then the reader needs the rights on what that reads.
    grant select on
        public.message_usage, headroom.plan_revision, headroom.plans, headroom.subscribers, headroom.subscriptions,
        headroom.audit_log
    to headroom_dashboard;
    grant select on headroom.spent_trials, headroom.secrets to headroom_dashboard, headroom_operator;
    if not exists (
        select from pg_policy where polrelid = 'public.message_usage'::regclass and polname = 'headroom_dashboard'
    ) then
        create policy headroom_dashboard on public.message_usage for select to headroom_dashboard using (true);
    end if;
    -- Citus cannot plan a function beside the rows of many users, so the view has no rows for end users. Its definition
    -- is in functions/: the build would refuse a second one on one line.
    create or replace
    view public.monthly_usage as select usage.* from headroom.monthly_usage as usage;
    revoke all on public.monthly_usage from headroom_user;
    if exists (select from pg_roles where rolname = 'authenticated') then
        revoke all on public.monthly_usage from authenticated;
    end if;
end
$$;
