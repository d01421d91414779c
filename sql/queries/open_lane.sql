-- Creates the receipt of a lane if there is none, and returns its number. $1 uuid: lane, a new name in each process.
-- Also deletes receipts that were not written for a day: their processes have ended, and a lane repeats a lost batch
-- within seconds.
with deleted_receipts as (
    delete from headroom.lane_receipts
    where bucket = 0 and updated_at < headroom.now() - interval '1 day' and lane <> $1
)
insert into headroom.lane_receipts as receipt (bucket, lane, number, updated_at) values (0, $1, 0, headroom.now())
on conflict (bucket, lane) do update set updated_at = excluded.updated_at
returning receipt.number;
