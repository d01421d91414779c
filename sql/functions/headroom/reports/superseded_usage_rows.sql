-- Shows usage rows after which the same user began another period in the same month or week, as 2026-03 before
-- 2026-03.2. A report of March has the messages of both, and counts the user once, by the later row: it subtracts these
-- rows.
--
-- ctid and billing_period are those of the later row. Nearly no row has one, so this costs little more than a scan.
create or replace view headroom.superseded_usage_rows as
select later.ctid, later.billing_period, earlier.plan, earlier.tier
from public.message_usage as later
cross join lateral (
    select usage.plan, usage.tier from headroom.usage_rows as usage
    where usage.bucket = later.bucket and usage.user_id = later.user_id
        and usage.billing_period = headroom.earlier_label(later.billing_period)
    -- This keeps the subquery lateral: a join would judge all rows.
    order by null::boolean
) as earlier
where later.billing_period like '%.%';
comment on view headroom.superseded_usage_rows is
    'Usage rows after which the same user began another period in the same month or week.';
grant select on headroom.superseded_usage_rows to headroom_service;
