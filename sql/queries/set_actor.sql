-- Sets who makes the changes of this transaction, for the audit log. $1 text: actor. $2 text: the reason that is
-- recorded if a function has no parameter for it; empty is none.
select
    pg_catalog.set_config('headroom.actor', $1, true) as actor,
    pg_catalog.set_config('headroom.reason', $2, true) as reason;
