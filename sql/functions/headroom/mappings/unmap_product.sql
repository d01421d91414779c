-- Deletes the mapping of a product. Applied events keep their plans. Returns false if there was no mapping.
create or replace function headroom.unmap_product(p_source text, p_product text) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    delete from headroom.store_products as products
    where products.source = p_source and products.product = p_product;
    return found;
end
$$;
