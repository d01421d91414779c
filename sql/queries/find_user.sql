-- Returns the id of the user with this name. $1 text: name.
select headroom.user_id($1::text) as user_id;
