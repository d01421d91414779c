-- Revokes a token. $1 bigint: number of the token.
select headroom.revoke_token($1) as name;
