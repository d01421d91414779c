-- name: mark_tokens_used
-- $1 bigint[]: tokens that were used. Several instances may tell of the same one: a row is written once a minute.
update headroom.tokens as tokens
set last_used_at = headroom.now()
where tokens.id = any ($1) and (tokens.last_used_at is null or tokens.last_used_at < headroom.now() - interval '1 minute');
