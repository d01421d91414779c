-- Ends the earlier periods of users whose period has just begun: headroom.end_earlier_periods. $1 smallint: bucket. $2
-- uuid[]: users. $3 text[]: their periods.
select headroom.end_earlier_periods($1::smallint, $2::uuid[], $3::text[]);
