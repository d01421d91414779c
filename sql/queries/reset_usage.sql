-- Sets a user's count to 0. $1 uuid: user. $2 text: period; null is the current one, and 'window' the open window
-- alone.
select null from public.reset_usage($1, $2);
