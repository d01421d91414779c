-- Creates the receipt of a lane in a bucket if there is none, and returns its number. $1 smallint: bucket. $2 uuid:
-- lane, a new name in each process. It also deletes the bucket's receipts that were not written for a day: their
-- processes have ended, and a lane repeats a lost batch within seconds.
with deleted_receipts as (
    delete from headroom.lane_receipts
    where bucket = $1::smallint and updated_at < headroom.now() - interval '1 day' and lane <> $2
)
insert into headroom.lane_receipts as receipt (bucket, lane, number, updated_at)
values ($1::smallint, $2, 0, headroom.now())
on conflict (bucket, lane) do update set updated_at = excluded.updated_at
returning receipt.number;
