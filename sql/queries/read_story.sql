-- What is on record about a user, in the order in which it happened: the newest $2 events of user $1.
select newest.at, newest.what, newest.detail, newest.actor, newest.reason
from (
    select story.* from public.user_story as story where story.user_id = $1 order by story.id desc limit $2
) as newest
order by newest.id;
