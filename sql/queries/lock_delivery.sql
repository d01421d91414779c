-- Returns whether this session delivers notifications.
select headroom.lock_delivery() as delivers;
