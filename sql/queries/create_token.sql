-- Stores a token. $1 text: name. $2 text[]: scopes. $3 bytea: digest. $4 integer: days until it expires; null is never.
-- is_first: whether there was no token before, so that every connection needs one from now on if authentication is
-- `auto`.
select
    headroom.create_token($1, $2, $3, headroom.now() + pg_catalog.make_interval(days => $4)) as id,
    not exists (select from headroom.tokens) as is_first;
