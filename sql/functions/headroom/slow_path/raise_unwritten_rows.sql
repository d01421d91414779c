-- Raises the error about the first usage row that headroom.write_usage_rows has not written: serialization_failure if
-- another session has inserted it, otherwise HR006 or HR011 (headroom.raise_discarded_row). The parameters are those of
-- that function.
create or replace function headroom.raise_unwritten_rows(
    p_bucket smallint, p_entitlements headroom.entitlement[], p_generations bigint[]
) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_user uuid;
    v_generation bigint;
    v_expected bigint;
begin
    for v_user, v_generation, v_expected in
        select derived.user_id, usage.generation, p_generations[derived.ordinality]
        from unnest(p_entitlements) with ordinality as derived
        left join lateral (
            select one.generation from public.message_usage as one
            where one.bucket = p_bucket and one.user_id = derived.user_id
                and one.billing_period = derived.billing_period
            limit 1
        ) as usage on true
    loop
        if v_generation <> v_expected then
            raise exception 'another session has inserted the usage row of user %', v_user
                using errcode = 'serialization_failure', hint = 'Try again.';
        elsif v_generation is null then
            perform headroom.raise_discarded_row('public.message_usage', v_user);
        end if;
    end loop;
    -- A row was not updated, but which one is not known. The service finds it by executing parts of the batch.
    perform headroom.raise_discarded_row('public.message_usage', (p_entitlements[1]).user_id);
end
$$;
