-- Returns the label of the billing period that begins in the month of this day: YYYY-MM.
create or replace function headroom.month_label(p_day date) returns text
    language sql stable parallel safe
    return pg_catalog.to_char(p_day, 'YYYY-MM');
