-- Writes the usage of those parts that the plan counts into a user's rows of a billing period. The caller has locked
-- the usage row of the user's open period, or the subscriber.
create or replace function headroom.write_part_usages(
    p_user_id uuid, p_billing_period text, p_parts headroom.part_usage[]
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_parts constant headroom.part_usage[] := array(
        select part from unnest(p_parts) as part
        where part.counter is not null and part.kind <> 'fallback'
        order by part.kind, part.counter
    );
begin
    if v_parts <> '{}' then
        perform headroom.write_parts(
            headroom.bucket_of(p_user_id), array_agg(p_user_id), array_agg(p_billing_period), array_agg(part.kind),
            array_agg(part.counter), array_agg(part.generation), array_agg(part.used), array_agg(part.held),
            array_agg(part."limit"), array_agg(part.window_opened_at), array_agg(part.window_ends_at),
            array_agg(part.window_used), array_agg(part.window_held), array_agg(part.window_limit),
            array_agg(part.holds_end_at)
        )
        from unnest(v_parts) as part;
    end if;
end
$$;
