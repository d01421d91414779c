-- Creates the subscriber of a forgotten user that has spent a trial, or messages of a plan that never resets, so that
-- these stay spent. Functions that write usage without creating a subscriber call it first: it waits for a step of
-- headroom.divide_users, as headroom.lock_subscriber does, before the first row is locked.
create or replace function headroom.recreate_forgotten_subscriber(p_user_id uuid) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform headroom.await_division();
    insert into headroom.subscribers (bucket, user_id)
    select spent.bucket, p_user_id from headroom.spent_trials as spent
    where spent.bucket = headroom.bucket_of(p_user_id) and spent.digest = headroom.spent_trial_digest(p_user_id)
    on conflict (bucket, user_id) do nothing;
end
$$;
