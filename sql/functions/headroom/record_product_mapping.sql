-- Records a change of a product's mapping in the audit log: it changes what its buyers may send.
create or replace function headroom.record_product_mapping() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform headroom.record_change(
        null, null, lower(tg_op), case when tg_op <> 'INSERT' then to_jsonb(old) end,
        case when tg_op <> 'DELETE' then to_jsonb(new) end
    );
    return null;
end
$$;
revoke all on function headroom.record_product_mapping() from public;
alter function headroom.record_product_mapping() owner to headroom_service;
