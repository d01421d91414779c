-- Creates the subscriptions of users whose first message is counted or held. Parameters:
-- headroom.create_first_subscriptions.
select headroom.create_first_subscriptions(
    0::smallint, $1::uuid[], $2::text[], $3::timestamptz[], $4::boolean[], $5::boolean[]
);
