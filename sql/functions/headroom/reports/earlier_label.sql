-- Returns the label of a user's period before p_label in the same month or week: 2026-03.2 for 2026-03.3, and 2026-03
-- for 2026-03.2. It is null for a label without a number.
create or replace function headroom.earlier_label(p_label text) returns text
    language sql immutable parallel safe
    return case
        when headroom.unnumbered_label(p_label) = p_label then null
        when p_label like '%.2' then headroom.unnumbered_label(p_label)
        else headroom.unnumbered_label(p_label) || '.' || (split_part(p_label, '.', 2)::integer - 1)
    end;
