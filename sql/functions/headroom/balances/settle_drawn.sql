-- Takes from a user's balances what a usage row has taken from them: p_drawn is its headroom.drawn_messages, and
-- p_first_end its extra_expires.
create or replace function headroom.settle_drawn(
    p_user_id uuid, p_drawn integer, p_first_end timestamptz, p_at timestamptz
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_balance record;
begin
    if p_drawn > 0 then
        for v_balance in
            select one.key, one.drawn from headroom.user_balances(p_user_id, p_at, p_drawn, p_first_end) as one
            where one.drawn > 0
        loop
            update headroom.grants set taken = taken + v_balance.drawn
            where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and key = v_balance.key;
        end loop;
    end if;
end
$$;
