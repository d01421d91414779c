-- Locks and reads a usage row of a period that is not open: headroom.lock_past_usage. $1 uuid: user. $2 text: period.
select past.* from headroom.lock_past_usage($1, $2) as past;
