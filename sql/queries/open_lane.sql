-- name: open_lane
-- A receipt for a new lane. $1 uuid: its name, new with each process. Receipts of lanes that have not moved for a day
-- belong to processes long gone; a lost batch is sent again within seconds or never.
with swept as (
    delete from headroom.lane_receipts where moved_at < headroom.now() - interval '1 day'
)
insert into headroom.lane_receipts (lane, number, moved_at) values ($1, 0, headroom.now()) on conflict do nothing;
