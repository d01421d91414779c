-- Deletes the payloads of old billing events. $1 integer: events at most. headroom.prune_billing_events has the age.
select headroom.prune_billing_events(p_limit => $1);
