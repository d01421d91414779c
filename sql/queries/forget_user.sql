-- Deletes all data of a user. $1 uuid: user.
select null from public.forget_user($1);
