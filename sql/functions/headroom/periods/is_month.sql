-- Returns whether the label of a billing period is a month, YYYY-MM.
create or replace function headroom.is_month(p_label text) returns boolean
    language sql immutable parallel safe
    return p_label ~ '^[0-9]{4}-(0[1-9]|1[0-2])$';
grant execute on function headroom.is_month(text) to headroom_operator, headroom_dashboard;
