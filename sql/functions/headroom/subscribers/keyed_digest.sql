-- Returns the HMAC-SHA256 of a user's id. The keys are parameters because PostgreSQL only inlines a function that reads
-- no table. The first message of each user calls it, and a call that is not inlined is measurably slower.
create or replace function headroom.keyed_digest(p_user_id uuid, p_inner_key bytea, p_outer_key bytea) returns bytea
    language sql immutable parallel safe
    return pg_catalog.sha256(p_outer_key || pg_catalog.sha256(p_inner_key || pg_catalog.uuid_send(p_user_id)));
