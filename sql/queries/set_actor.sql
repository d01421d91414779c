-- For the audit log, of what this transaction changes. $1 text: whom it names. $2 text: why, where the change itself
-- takes no reason; empty is none.
select
    pg_catalog.set_config('headroom.actor', $1, true),
    pg_catalog.set_config('headroom.reason', $2, true);
