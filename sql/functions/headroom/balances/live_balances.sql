-- Returns the balances of a user that have not ended, in the order in which messages are taken from them, also those of
-- which nothing is left. A message that is released gives back to them.
create or replace function headroom.live_balances(p_user_id uuid, p_at timestamptz) returns headroom.balance[]
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return array(
        select row(one.key, one.messages, one.expires_at)::headroom.balance
        from headroom.user_balances(p_user_id, p_at) with ordinality as one
        where one.expires_at > p_at
        order by one.ordinality
    );
end
$$;
