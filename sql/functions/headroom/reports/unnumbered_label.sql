-- Returns the month or the week of a label with a number: 2026-03 for 2026-03.2, the label of a user's second period
-- that began in March. Any other label is returned as it is.
create or replace function headroom.unnumbered_label(p_label text) returns text
    language sql immutable parallel safe
    return case
        when strpos(p_label, '.') = 0 then p_label
        else regexp_replace(p_label, '^([0-9]{4}-(?:0[1-9]|1[0-2]|W[0-9]{2}))\.([2-9]|[1-9][0-9]{1,2})$', '\1')
    end;
