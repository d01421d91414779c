-- One row per user, with the usage row of the period that CHECK would answer with now, if there is one, and else the
-- answer. A view of its own, a security barrier and an ORDER BY that sorts nothing, for the reasons that
-- headroom.answered_usage_rows names.
create or replace view headroom.answered_users with (security_barrier) as
select
    users.user_id, usage.user_id is not null as has_row, usage.billing_period, usage.plan, usage.state, usage.used,
    usage.held, usage."limit", usage.tier, usage.started_at, usage.resets_at, usage.expires_at, usage.updated_at,
    usage.is_open, usage.has_no_access,
    -- Users whose period has no row yet.
    case when usage.user_id is null then headroom.current_snapshot(users.user_id, null) end as snapshot
from (
    -- A subscriber in another bucket would not be found (headroom.raise_discarded_row).
    select subscriber.bucket, subscriber.user_id from headroom.subscribers as subscriber
    where subscriber.bucket = headroom.bucket_of(subscriber.user_id)
    union
    select message_usage.bucket, message_usage.user_id from public.message_usage
) as users
left join headroom.usage_rows as usage
    on usage.bucket = users.bucket and usage.user_id = users.user_id and usage.is_current and not usage.has_ended
order by null::boolean;
