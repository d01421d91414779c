-- name: read_locked
-- For which users another session holds a row locked, without waiting for it. $1 uuid[]: users. A row per such user: the
-- place in $1.
--
-- Counting locks a user's usage rows, and on the careful way the subscriber's row, which a change of plan holds.
with free as materialized (
    select usage.user_id, usage.billing_period
    from unnest($1::uuid[]) as request (user_id)
    join public.message_usage as usage
        on usage.bucket = headroom.bucket_of(request.user_id) and usage.user_id = request.user_id
    for update of usage skip locked
),
free_subscribers as materialized (
    select subscriber.user_id
    from unnest($1::uuid[]) as request (user_id)
    join headroom.subscribers as subscriber
        on subscriber.bucket = headroom.bucket_of(request.user_id) and subscriber.user_id = request.user_id
    for share of subscriber skip locked
)
select request.ordinal::integer
from unnest($1::uuid[]) with ordinality as request (user_id, ordinal)
where exists (
    select from public.message_usage as usage
    where usage.bucket = headroom.bucket_of(request.user_id) and usage.user_id = request.user_id and not exists (
        select from free where free.user_id = usage.user_id and free.billing_period = usage.billing_period
    )
) or exists (
    select from headroom.subscribers as subscriber
    where subscriber.bucket = headroom.bucket_of(request.user_id) and subscriber.user_id = request.user_id and not exists (
        select from free_subscribers where free_subscribers.user_id = subscriber.user_id
    )
);
