-- The label of the billing period that begins in the month of p_month, a day of it: YYYY-MM.
create or replace function headroom.month_label(p_month date) returns text
    language sql stable parallel safe
    return pg_catalog.to_char(p_month, 'YYYY-MM');
