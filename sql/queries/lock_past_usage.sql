-- Locks a user's usage row of a period that is not open, and reads it. No row if there is none. $1 uuid: user. $2 text:
-- period. held: the messages that holds reserve now; held_in_row may include holds that have expired.
select
    usage.message_count as used, holds.held, usage.held as held_in_row, usage."limit", usage.generation, usage.plan,
    usage.state, usage.started_at, usage.resets_at, usage.expires_at, usage.renews
from headroom.lock_usage($1, $2) as usage
cross join lateral headroom.active_holds($1, $2, headroom.now()) as holds
where usage.user_id is not null;
