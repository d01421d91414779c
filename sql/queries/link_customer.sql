-- Records a link of a transaction or a customer with a user: headroom.link_customer. $1 text: source. $2 text: the
-- transaction, or the store's id of the customer. $3 text: UUID of the user. id: the event's id.
select headroom.link_customer($1, $2, $3::uuid) as id;
