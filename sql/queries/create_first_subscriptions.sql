-- Creates the subscriptions of users whose first message is counted or held. Parameters:
-- headroom.create_first_subscriptions.
select headroom.create_first_subscriptions(
    $1::smallint, $2::uuid[], $3::text[], $4::timestamptz[], $5::boolean[], $6::boolean[]
);
