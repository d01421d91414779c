-- Notes that these digests are the user's who stands beside them, unless something newer says otherwise. Returns what is
-- news: the digests, and whose they were before.
create or replace function headroom.learn_store_identities(
    p_source text, p_identities text[], p_at timestamptz, p_id text
) returns text[]
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_user_id uuid;
    v_news text[];
begin
    select names.identity::uuid into v_user_id
    from unnest(p_identities) with ordinality as names (identity, place)
    where names.identity not like '%:%'
    order by names.place limit 1;
    if v_user_id is null then
        return '{}';
    end if;
    select coalesce(array_agg(news.name), '{}') into v_news
    from (
        select unnest(array[names.identity, known.user_id::text, v_user_id::text]) as name
        from unnest(p_identities) as names (identity)
        left join headroom.store_identities as known on known.source = p_source and known.identity = names.identity
        where names.identity like 'sha256:%' and (
            known.user_id is null
            or known.user_id <> v_user_id and (known.told_at, known.told_by collate "C") < (p_at, p_id)
        )
    ) as news
    where news.name is not null;
    insert into headroom.store_identities as known (source, identity, user_id, told_at, told_by)
    select distinct p_source, names.identity, v_user_id, p_at, p_id
    from unnest(p_identities) as names (identity)
    where names.identity like 'sha256:%'
    on conflict (source, identity) do update
    set user_id = excluded.user_id, told_at = excluded.told_at, told_by = excluded.told_by
    where (known.told_at, known.told_by collate "C") < (excluded.told_at, excluded.told_by);
    return v_news;
end
$$;
revoke all on function headroom.learn_store_identities(text, text[], timestamptz, text) from public;
grant execute on function headroom.learn_store_identities(text, text[], timestamptz, text) to headroom_service;
