-- Deletes the mapping of a product. $1 text: source. $2 text: product.
select headroom.unmap_product($1, $2) as was_mapped;
