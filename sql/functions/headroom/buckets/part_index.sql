-- Returns the name of a table's index by headroom.part_of, which exists while users are divided into buckets.
create or replace function headroom.part_index(p_table text) returns text
    language sql immutable parallel safe
    return p_table || '_part';
