-- Lets the limit of a user's usage row include what is left in balances, so that messages are counted there without
-- looking at these. Nothing is taken from a balance until headroom.settle_balances; until then all of what the row
-- counts beyond its own limit is of the balance that ends first. So the row is usable no longer than until that end,
-- and not beyond its last message but one if there are others. A row that has counted more than its own limit is not
-- usable: headroom.drawn_messages could not tell what was taken.
--
-- At most one row of a user has balances; headroom.detach_balances was called before. p_billing_period: the open
-- period's, whose row the caller has locked. If it has no row, the next message attaches the balances.
create or replace function headroom.attach_balances(
    p_user_id uuid, p_billing_period text, p_at timestamptz
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket constant smallint := headroom.bucket_of(p_user_id);
    v_balances constant headroom.balance[] := headroom.live_balances(p_user_id, p_at);
    v_extra bigint;
    -- This is the first of which something is left.
    v_first headroom.balance;
    v_balance headroom.balance;
    -- Then the hold gives back what it has taken from a balance.
    v_holds_end_at constant timestamptz := (
        select min(keys.expires_at) from headroom.message_keys as keys
        where keys.bucket = v_bucket and keys.user_id = p_user_id and keys.status = 'h' and keys.expires_at > p_at
            and keys.parts ? 'charges'
    );
    -- A message that is released gives back to a balance that is used up.
    v_has_balances constant boolean := v_balances <> '{}' or v_holds_end_at is not null;
begin
    foreach v_balance in array v_balances loop
        continue when v_balance.messages = 0;
        if v_extra is null then
            v_first := v_balance;
        end if;
        v_extra := coalesce(v_extra, 0) + v_balance.messages;
    end loop;
    update headroom.subscribers set has_balances = v_has_balances
    where bucket = v_bucket and user_id = p_user_id and has_balances <> v_has_balances;
    if v_has_balances then
        update public.message_usage
        -- LEAST skips nulls.
        set "limit" = case when "limit" is not null then least("limit" + coalesce(v_extra, 0), 2147483647) end,
            extra = case when v_extra is not null then least(v_extra, 2147483647 - coalesce("limit", 0)) end,
            extra_expires = nullif(v_first.expires_at, 'infinity'),
            usable_count = case
                when v_extra is null or "limit" is null then null
                when message_count::bigint + held > "limit" then 0
                when v_extra > v_first.messages then least("limit"::bigint + v_first.messages - 1, 2147483647)
            end,
            usable_until = case
                when v_extra is not null and message_count::bigint + held > "limit" then '-infinity'
                else least(usable_until, v_first.expires_at, v_holds_end_at)
            end
        where bucket = v_bucket and user_id = p_user_id and billing_period = p_billing_period;
    end if;
end
$$;
