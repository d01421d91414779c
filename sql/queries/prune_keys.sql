-- Deletes old keys. $1 integer: days that keys are kept. $2 integer: keys at most.
select headroom.prune_keys(make_interval(days => $1::integer), $2::integer);
