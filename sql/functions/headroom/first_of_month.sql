-- The first day of the month that a day is in.
create or replace function headroom.first_of_month(p_day date) returns date
    language sql immutable parallel safe
    return p_day - (extract(day from p_day)::integer - 1);
