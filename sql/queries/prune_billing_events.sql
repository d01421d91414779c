-- $1 integer: events at most. How long they are kept stands in the function.
select headroom.prune_billing_events(p_limit => $1);
