-- For which users another session holds a row locked, without waiting for it. $1 uuid[]: users. A row per such user: the
-- place in $1.
--
-- Counting locks a user's usage rows. The slow path locks the subscriber's row as well, and so does a change of plan. Each
-- count is of one user's rows, so that it is made by index: the planner may read a whole table for a join or for EXISTS.
select request.ordinal::integer
from unnest($1::uuid[]) with ordinality as request (user_id, ordinal)
where (
    select count(*) from public.message_usage as usage
    where usage.bucket = headroom.bucket_of(request.user_id) and usage.user_id = request.user_id
) > (
    select count(*) from (
        select from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(request.user_id) and usage.user_id = request.user_id
        for update skip locked
    ) as free
) or (
    select count(*) from headroom.subscribers as subscriber
    where subscriber.bucket = headroom.bucket_of(request.user_id) and subscriber.user_id = request.user_id
) > (
    select count(*) from (
        select from headroom.subscribers as subscriber
        where subscriber.bucket = headroom.bucket_of(request.user_id) and subscriber.user_id = request.user_id
        for share skip locked
    ) as free
);
