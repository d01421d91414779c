-- Trigger function: replaces the name of a renamed plan in the effects of recorded events. Foreign keys do the same in
-- other tables.
create or replace function headroom.rename_plan_in_events() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    update headroom.billing_events as events
    set effects = (
        select jsonb_agg(
            effects.value || coalesce((
                select jsonb_object_agg(named.field, new.plan)
                from jsonb_each_text(effects.value) as named (field, plan)
                where named.field in ('plan', 'regular_plan', 'next_plan') and named.plan = old.plan
            ), '{}')
            order by effects.position
        )
        from jsonb_array_elements(events.effects) with ordinality as effects (value, position)
    )
    where events.effects::text like '%"' || old.plan || '"%';
    return null;
end
$$;
