-- Checks that every user's rows are in the user's bucket: headroom.end_division.
select headroom.end_division();
