-- HMAC-SHA256 of a user's id. The keys are arguments because a function that reads no table is inlined; a new user's
-- first message calls this, and a call that is not inlined costs it noticeably.
create or replace function headroom.keyed_digest(p_user_id uuid, p_inner_key bytea, p_outer_key bytea) returns bytea
    language sql immutable parallel safe
    return pg_catalog.sha256(p_outer_key || pg_catalog.sha256(p_inner_key || pg_catalog.uuid_send(p_user_id)));
