-- The one whom these identities name: the first UUID, else the user of the first digest that is known, else the first
-- digest, which may become known. Null where they name nobody.
--
-- In plpgsql, here and in headroom.store_notification_answer: it keeps its plans for the length of a connection, where a
-- function in SQL is planned anew in each transaction, which costs more than what it finds.
create or replace function headroom.store_person(p_source text, p_identities text[]) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce(
        (
            select names.identity from unnest(p_identities) with ordinality as names (identity, place)
            where names.identity not like '%:%'
            order by names.place limit 1
        ),
        (
            select known.user_id::text
            from unnest(p_identities) with ordinality as names (identity, place)
            join headroom.store_identities as known on known.source = p_source and known.identity = names.identity
            order by names.place limit 1
        ),
        p_identities[1]
    );
end
$$;
revoke all on function headroom.store_person(text, text[]) from public;
grant execute on function headroom.store_person(text, text[]) to headroom_service;
