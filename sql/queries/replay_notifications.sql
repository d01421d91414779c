-- Makes notifications pending again. $1 text[]: ids; null is all that have failed. Returns their ids.
select replayed.id::text as id from headroom.replay_notifications($1::uuid[]) as replayed (id);
