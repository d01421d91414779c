-- $1 bigint: the token's number.
select headroom.revoke_token($1) as name;
