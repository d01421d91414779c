-- The receipt of a lane, made if there is none, and its number. $1 uuid: the lane's name, new with each process. Receipts of
-- lanes that have not moved for a day belong to processes long gone; a lost batch is sent again within seconds or never.
with swept as (
    delete from headroom.lane_receipts where bucket = 0 and moved_at < headroom.now() - interval '1 day' and lane <> $1
)
insert into headroom.lane_receipts as receipt (bucket, lane, number, moved_at) values (0, $1, 0, headroom.now())
on conflict (bucket, lane) do update set moved_at = excluded.moved_at
returning receipt.number;
