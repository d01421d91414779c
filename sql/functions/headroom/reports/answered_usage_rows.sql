-- The rows of headroom.judged_usage_rows with what their columns leave open: snapshot, for the standing ?, and ended,
-- for the standing t, are the answer to the user, null if that is about another period.
--
-- A view of its own, apart from headroom.usage_rows: Citus takes a function that a view calls for a part of each type
-- whose fields that view uses, and this one returns the type. A security barrier, and an ORDER BY that sorts nothing,
-- so that PostgreSQL calls the function once per row (headroom.judged_usage_rows).
create or replace view headroom.answered_usage_rows with (security_barrier) as
select
    usage.*,
    case
        when usage.standing = '?' then headroom.current_snapshot(usage.user_id, usage.billing_period)
    end as snapshot,
    -- An edit of the plan's days moves the end.
    case
        when usage.standing = 't' then headroom.current_snapshot(usage.user_id, usage.billing_period)
    end as ended
from headroom.judged_usage_rows as usage
order by null::boolean;
