-- Trigger function: deletes what was counted of the parts of a deleted usage row's messages. What these have taken from
-- balances stays taken.
create or replace function headroom.delete_parts() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    delete from headroom.usage_parts
    where bucket = old.bucket and user_id = old.user_id and billing_period = old.billing_period;
    if old.extra is not null then
        perform headroom.settle_drawn(
            old.user_id,
            headroom.drawn_messages(old.message_count, old.held, old."limit", old.extra, old.usable_count),
            old.extra_expires, headroom.now()
        );
    end if;
    return null;
end
$$;
