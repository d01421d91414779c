-- name: read_locked
-- Which users' rows another session holds locked, without waiting for it. $1 uuid[]: users. A row per locked user: the
-- place in $1.
with free as materialized (
    select usage.user_id, usage.billing_period
    from unnest($1::uuid[]) as request (user_id)
    join public.message_usage as usage on usage.user_id = request.user_id
    for update of usage skip locked
)
select distinct request.ordinal::integer
from unnest($1::uuid[]) with ordinality as request (user_id, ordinal)
join public.message_usage as usage on usage.user_id = request.user_id
where not exists (
    select from free where free.user_id = usage.user_id and free.billing_period = usage.billing_period
);
