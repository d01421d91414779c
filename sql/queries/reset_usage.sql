-- Sets a user's count to 0. $1 uuid: user. $2 text: period; null is the current one, and 'window' the open window
-- alone. $3 text, $4 text: a model and a member, if only their counts are reset.
select null from public.reset_usage($1, $2, $3, $4::uuid);
