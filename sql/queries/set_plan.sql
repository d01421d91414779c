-- Sets a user's plan. $1 uuid: user. $2 text: plan. $3 text: state. $4, $5, $6 timestamptz: started, expires, grace
-- until. $7 integer: anchor day.
select null from public.set_plan($1, $2, $3, $4, $5, $6, $7);
