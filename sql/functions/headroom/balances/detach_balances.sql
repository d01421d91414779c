-- Makes a user's usage rows such as if there were no balances: what was counted is taken from them, what expired holds
-- had taken is given back, and no limit includes them. Then functions can change rows that know nothing of balances.
-- Afterwards headroom.attach_balances is called. The caller has locked the subscriber. Locks the usage row with the
-- balances, and those of the holds.
create or replace function headroom.detach_balances(p_user_id uuid, p_at timestamptz) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket constant smallint := headroom.bucket_of(p_user_id);
    v_period text;
begin
    if not exists (
        select from headroom.subscribers as subscriber
        where subscriber.bucket = v_bucket and subscriber.user_id = p_user_id and subscriber.has_balances
    ) then
        return;
    end if;
    v_period := headroom.settle_balances(p_user_id, p_at);
    update public.message_usage
    set "limit" = "limit" - extra, extra = null, extra_expires = null, usable_count = null, usable_until = '-infinity'
    where bucket = v_bucket and user_id = p_user_id and billing_period = v_period;
    perform headroom.return_expired_holds(p_user_id, p_at);
end
$$;
