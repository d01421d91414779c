-- Trigger function: notifies the instances that listen. Others poll every two seconds.
create or replace function headroom.notify_tokens_changed() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_notify('headroom_tokens', '');
    return null;
end
$$;
