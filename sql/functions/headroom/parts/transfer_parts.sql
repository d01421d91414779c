-- Raises the receiver's counts of models and members in a billing period to what the giver has counted and holds in any
-- of p_periods. Returns what headroom.revert_transferred_parts needs; null if nothing was raised. The caller has locked
-- the receiver's usage rows.
create or replace function headroom.transfer_parts(
    p_giver uuid, p_periods text[], p_receiver uuid, p_billing_period text
) returns jsonb
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_part record;
    v_own integer;
    v_generation bigint;
    v_raised jsonb;
begin
    for v_part in
        select
            parts.kind, parts.name, max(parts."limit") as "limit", max(parts.window_limit) as window_limit,
            least(max(parts.used::bigint + coalesce(holds.held, parts.held)), 2147483647)::integer as messages
        from headroom.usage_parts as parts
        left join lateral (
            select expired.held from headroom.held_parts(
                p_giver, parts.billing_period, parts.kind, parts.name, null, headroom.now()
            ) as expired
            where parts.holds_end_at <= headroom.now()
            offset 0
        ) as holds on true
        where parts.bucket = headroom.bucket_of(p_giver) and parts.user_id = p_giver
            and parts.billing_period = any(p_periods)
        group by parts.kind, parts.name
        order by parts.kind, parts.name
    loop
        select parts.used into v_own from headroom.usage_parts as parts
        where parts.bucket = headroom.bucket_of(p_receiver) and parts.user_id = p_receiver
            and parts.billing_period = p_billing_period and parts.kind = v_part.kind and parts.name = v_part.name;
        continue when coalesce(v_own, 0) >= v_part.messages;
        -- It is a variable, because Citus sends no INSERT that calls nextval.
        v_generation := headroom.next_generation();
        insert into headroom.usage_parts as parts (
            bucket, user_id, billing_period, kind, name, generation, updated_at, used, "limit", window_limit
        ) values (
            headroom.bucket_of(p_receiver), p_receiver, p_billing_period, v_part.kind, v_part.name, v_generation,
            headroom.now(), v_part.messages, v_part."limit", v_part.window_limit
        )
        on conflict (bucket, user_id, billing_period, kind, name) do update
        set used = excluded.used, updated_at = excluded.updated_at
        returning parts.generation into v_generation;
        v_raised := coalesce(v_raised, '[]') || jsonb_build_object(
            'kind', v_part.kind, 'name', v_part.name, 'messages', v_part.messages - coalesce(v_own, 0),
            'generation', v_generation
        );
    end loop;
    return v_raised;
end
$$;
