-- Returns the key of a purchase's grant, which has at most 128 bytes for a transaction of any length.
create or replace function headroom.purchase_key(p_source text, p_transaction text) returns text
    language sql immutable parallel safe
begin atomic
    select case
        when octet_length(names.name) <= 128 then names.name
        else 'store:' || encode(sha256(convert_to(names.name, 'UTF8')), 'hex')
    end
    from (select 'store:' || p_source || ':' || p_transaction as name) as names;
end;
