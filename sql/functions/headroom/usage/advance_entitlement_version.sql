-- Trigger function: gives a usage row a new entitlement_version, because lanes cache its entitlement.
create or replace function headroom.advance_entitlement_version() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    -- It is a variable, because Citus sends no UPDATE that calls nextval.
    v_version constant bigint := nextval('headroom.entitlement_versions');
begin
    update public.message_usage set entitlement_version = v_version
    where bucket = new.bucket and user_id = new.user_id and billing_period = new.billing_period;
    return null;
end
$$;
