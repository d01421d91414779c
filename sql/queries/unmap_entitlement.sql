-- Deletes the mapping of an entitlement. $1 text: source. $2 text: entitlement.
select headroom.unmap_entitlement($1, $2) as was_mapped;
