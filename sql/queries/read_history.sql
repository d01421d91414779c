-- Reads a user's periods, newest first. $1 uuid: user. $2 integer: periods at most.
--
-- They are ordered by the end of each period, so that a trial comes before the paid month in which it ended. A row that
-- only older clients wrote has no end, so the end of its label in UTC counts.
select usage.billing_period, usage.used as message_count, usage."limit", usage.tier
from headroom.usage_rows as usage
where usage.bucket = headroom.bucket_of($1) and usage.user_id = $1
order by
    coalesce(
        usage.resets_at,
        usage.expires_at,
        headroom.period_start(
            headroom.label_cycle(usage.billing_period),
            headroom.next_period_day(
                headroom.label_cycle(usage.billing_period), headroom.label_day(usage.billing_period)
            ),
            1, 'UTC'
        ),
        usage.updated_at
    ) desc,
    headroom.sortable_label(usage.billing_period) desc
limit $2;
