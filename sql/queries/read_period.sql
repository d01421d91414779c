-- Reads the usage snapshot of a billing period other than the current one. $1 uuid: user. $2 text: period. Result:
-- headroom.past_snapshot.
select snapshot.*, (select revised.words_revision from headroom.plan_revision as revised) as words_revision
from headroom.past_snapshot($1, $2) as snapshot;
