-- For users whose month has just begun: headroom.end_earlier_months. $1 uuid[]: users. $2 text[]: their periods.
select headroom.end_earlier_months(0::smallint, $1::uuid[], $2::text[], headroom.now());
