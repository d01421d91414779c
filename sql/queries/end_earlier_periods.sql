-- For users whose period has just begun: headroom.end_earlier_periods. $1 uuid[]: users. $2 text[]: their periods.
select headroom.end_earlier_periods(0::smallint, $1::uuid[], $2::text[]);
