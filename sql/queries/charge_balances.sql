-- Takes messages from balances and gives them back. Parameters: headroom.charge_balances.
select headroom.charge_balances($1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::integer[]);
