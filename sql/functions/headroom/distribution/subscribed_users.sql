-- Reads what subscriptions show of each user of a distributed database, as sql/queries/read_subscribed_users.sql does
-- in another one, with the same parameters. The fingerprint is read first, so that the next poll finds a change that
-- happens meanwhile.
create or replace function headroom.subscribed_users(p_users uuid[], p_periods text[], p_unknown_users_policy text)
    returns table (
        ordinal integer, snapshot headroom.usage_snapshot, details headroom.subscription_details,
        changes_at timestamptz, fingerprint text
    )
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_user uuid;
    v_bucket smallint;
    v_revision integer;
    v_entitlement headroom.entitlement;
begin
    select revised.revision into v_revision from headroom.plan_revision as revised;
    for v_ordinal in 1..cardinality(p_users) loop
        ordinal := v_ordinal;
        v_user := p_users[v_ordinal];
        v_bucket := headroom.bucket_of(v_user);
        select present.fingerprint into fingerprint
        from headroom.fingerprints(v_bucket, array[v_user]) as present;
        select (usage.snapshot).* into snapshot -- noqa: AL03
        from headroom.row_snapshots as usage
        where usage.bucket = v_bucket and usage.user_id = v_user and usage.billing_period = p_periods[v_ordinal]
            and headroom.is_usable(
                usage.usable_until, usage.updated_at, usage.plan_revision, v_revision, headroom.now()
            );
        if found then
            select least(usage.usable_until, snapshot.window_ends_at) into changes_at
            from public.message_usage as usage
            where usage.bucket = v_bucket and usage.user_id = v_user and usage.billing_period = p_periods[v_ordinal];
        else
            v_entitlement := headroom.entitlement(v_user, headroom.now(), p_unknown_users_policy);
            snapshot := headroom.read_open_usage(v_entitlement);
            changes_at := least(v_entitlement.usable_until, snapshot.window_ends_at, snapshot.extra_expires, (
                select holds.ends_at
                from headroom.active_holds(v_user, snapshot.billing_period, headroom.now()) as holds
            ));
        end if;
        details := headroom.subscription_details(
            v_user, snapshot.state, snapshot.plan, snapshot.expires_at, snapshot.renews
        );
        return next;
    end loop;
end
$$;
