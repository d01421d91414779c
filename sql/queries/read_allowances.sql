-- Reads the allowances of a user's models and members. $1 smallint: bucket. $2 uuid: user. $3 text: billing period;
-- null is the open one.
select
    kind, name, label, used, held, "limit", tier, window_limit, window_used, window_held, window_resets_at, weight,
    fallback
from headroom.read_allowances($1, $2, $3);
