-- Returns a text that sorts a label among those of its cycle: 2026-03.010 for 2026-03.10, which would sort before
-- 2026-03.9. A label without a number is returned as it is.
create or replace function headroom.sortable_label(p_label text) returns text
    language sql immutable parallel safe
    return case
        when headroom.unnumbered_label(p_label) = p_label then p_label
        else headroom.unnumbered_label(p_label) || '.' || lpad(split_part(p_label, '.', 2), 3, '0')
    end;
