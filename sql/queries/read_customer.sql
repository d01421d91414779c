-- Locks a customer and reads all that decides what the customer has, as JSON. $1 text, $2 text: source and id of the event.
-- $3 boolean: it is applied anew. $4 text[], $5 text[]: what the customer is found by, and the users who are made known.
-- $6 text[], $7 text[]: products and entitlements whose mapping is asked for.
select headroom.read_customer($1, $2, $3, $4::text[], $5::text[]::uuid[], $6::text[], $7::text[])::text as customer;
