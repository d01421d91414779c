-- Finds the users whose rows another session has locked, without waiting for it. $1 smallint: bucket. $2 uuid[]: users
-- of this bucket. Returns the ordinals of these users.
--
-- Counting locks a user's usage rows. The slow path and changes of plan also lock the subscriber. Each count reads the
-- rows of one user by index; for a join or EXISTS the planner may read a whole table.
select request.ordinal::integer
from unnest($2::uuid[]) with ordinality as request (user_id, ordinal)
where (
    select count(*) from public.message_usage as usage
    where usage.bucket = $1::smallint and usage.user_id = request.user_id
) > (
    select count(*) from (
        select from public.message_usage as usage
        where usage.bucket = $1::smallint and usage.user_id = request.user_id
        for update skip locked
    ) as unlocked
) or (
    select count(*) from headroom.subscribers as subscriber
    where subscriber.bucket = $1::smallint and subscriber.user_id = request.user_id
) > (
    select count(*) from (
        select from headroom.subscribers as subscriber
        where subscriber.bucket = $1::smallint and subscriber.user_id = request.user_id
        for share skip locked
    ) as unlocked
);
