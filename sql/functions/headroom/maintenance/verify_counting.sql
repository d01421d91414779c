-- Verifies that the service can count. It counts a message as the service does, checks the rows, and rolls everything
-- back. Raises the error that keeps the service from counting, such as a missing right, a trigger or a constraint, or
-- HR009 if the rows have other numbers.
--
-- It does not verify that every user can be counted: a foreign key may refuse users that another table does not
-- contain.
create or replace function headroom.verify_counting() returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_period constant text := '9999-12';
    v_lane constant uuid := gen_random_uuid();
    v_user uuid;
    v_is_new boolean;
    v_counts bigint[];
    v_used integer;
    v_table text;
    v_schema text;
begin
    -- This is an existing user if there is one, because a trigger or a foreign key may require it. No existing row is
    -- changed.
    select usage.user_id into v_user from public.message_usage as usage where usage.billing_period <> v_period limit 1;
    v_is_new := v_user is null;
    v_user := coalesce(v_user, gen_random_uuid());
    insert into headroom.lane_receipts (bucket, lane, number, updated_at)
    values (headroom.bucket_of(v_user), v_lane, 0, headroom.now());
    if v_is_new and exists (select from headroom.plans where plan = 'trial') then
        perform headroom.count_messages(v_user, 1, null, null, 'trial');
    end if;
    insert into public.message_usage (bucket, user_id, billing_period, updated_at, plan)
    values (headroom.bucket_of(v_user), v_user, v_period, headroom.now(), 'trial');
    update public.message_usage
    set "limit" = 800, usable_until = 'infinity',
        plan_revision = (select revised.revision from headroom.plan_revision as revised)
    where bucket = headroom.bucket_of(v_user) and user_id = v_user and billing_period = v_period;
    select counted.counts into v_counts from headroom.count_keyed_batch(
        headroom.bucket_of(v_user), v_lane, 1, array[v_user], array[v_period], array[1],
        array[1::bigint], array[(-9223372036854775808)::bigint], array['verification'],
        array['consume'], array[1], array[1::bigint], array[0], '{}', 0, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
        (select revised.buckets_revision from headroom.plan_revision as revised)
    ) as counted
    where counted.counts is not null;
    select usage.message_count into v_used from public.message_usage as usage
    where usage.bucket = headroom.bucket_of(v_user) and usage.user_id = v_user and usage.billing_period = v_period;
    if v_counts is distinct from array[(1::bigint << 48) + (1::bigint << 32) + 1] or v_used is distinct from 1 then
        raise exception 'message_usage does not keep what is counted: after the first message of a user, it has %',
            coalesce(v_used::text, 'no row')
            using errcode = 'HR009', hint = 'Look at its triggers and rules: \d message_usage lists them. '
                'headroom.plan_revision must have one row.';
    end if;
    set constraints all immediate;
    delete from public.message_usage as usage
    where usage.bucket = headroom.bucket_of(v_user) and usage.user_id = v_user and usage.billing_period = v_period;
    raise exception using errcode = 'HR010';
exception
    when sqlstate 'HR010' then
        return;
    when sqlstate 'HR011' then
        raise exception 'message_usage does not keep what is counted: %', sqlerrm
            using errcode = 'HR009', hint = 'Look at its triggers and rules: \d message_usage lists them.';
    when foreign_key_violation then
        get stacked diagnostics v_schema = schema_name, v_table = table_name;
        if (v_schema, v_table) is distinct from ('public', 'message_usage') or not v_is_new then
            raise;
        end if;
end
$$;
