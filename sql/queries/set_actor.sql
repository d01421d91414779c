-- name: set_actor
-- $1 text: whom the audit log names for what this transaction changes.
select pg_catalog.set_config('headroom.actor', $1, true);
