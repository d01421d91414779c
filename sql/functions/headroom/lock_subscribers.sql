-- Makes these users known and locks them, in the order in which everybody locks. A user is made known and locked before
-- the next one is looked at: making all of them known first would hold a new user while waiting for an earlier one.
create or replace function headroom.lock_subscribers(p_users uuid[]) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_user uuid;
begin
    for v_user in select distinct users.user_id from unnest(p_users) as users (user_id) order by users.user_id loop
        perform headroom.lock_subscriber(v_user);
    end loop;
end
$$;
revoke all on function headroom.lock_subscribers(uuid[]) from public;
grant execute on function headroom.lock_subscribers(uuid[]) to headroom_service;
