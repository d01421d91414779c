-- Deletes the mapping of an entitlement. Applied events keep their plans. Returns false if there was no mapping.
create or replace function headroom.unmap_entitlement(p_source text, p_entitlement text) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    delete from headroom.store_entitlements as entitlements
    where entitlements.source = p_source and entitlements.entitlement = p_entitlement;
    return found;
end
$$;
