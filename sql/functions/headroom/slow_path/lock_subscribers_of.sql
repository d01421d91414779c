-- Locks the rows of p_users in headroom.subscribers, and returns the users that have one, both in ascending order.
-- p_users is ascending without duplicates.
create or replace function headroom.lock_subscribers_of(p_bucket smallint, p_users uuid[]) returns uuid[]
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    -- The subquery is lateral, so that each user is looked up in this order (docs/decisions/0003-lock-order.md).
    return array(
        select locked.user_id
        from unnest(p_users) as request (user_id)
        cross join lateral (
            select subscriber.user_id from headroom.subscribers as subscriber
            where subscriber.bucket = p_bucket and subscriber.user_id = request.user_id
            for no key update
        ) as locked
    );
end
$$;
