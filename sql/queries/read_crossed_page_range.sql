-- Reads the users at a tier of their open billing period, in a range of the table's pages. $1, $2 bigint: the first
-- page, and the first page after the range. headroom.record_notifications decides which of them have no notification
-- yet, because the rows may be on other machines than the notifications.
select usage.user_id
from headroom.usage_rows as usage
where usage.ctid >= ('(' || $1::bigint || ',0)')::tid and usage.ctid < ('(' || $2::bigint || ',0)')::tid
    and not usage.has_ended and usage.is_open and not usage.has_no_access and usage.tier <> 'silent';
