-- Locks a customer and reads everything that decides what its users may send, as JSON:
-- headroom.lock_and_read_customer. $1 text, $2 text: source and id of the event. $3 boolean: this is a replay.
-- $4 text[], $5 text[]: names of the customer, and users to create. $6 text[], $7 text[]: products and entitlements
-- whose mappings are needed.
select headroom.lock_and_read_customer(
    $1, $2, $3, $4::text[], $5::text[]::uuid[], $6::text[], $7::text[]
)::text as customer;
