-- Returns the day that a label of the form YYYY-MM, YYYY-Www or YYYY-MM-DD names (headroom.period_day); null for other
-- texts. The day of a label that is no label of headroom.period_label, such as 2026-02-30, is the one that follows.
--
-- The label of a user's second period that begins in the same month or week ends with .2, that of the next one with .3.
create or replace function headroom.label_day(p_label text) returns date
    language sql immutable parallel safe
    return case
        when p_label ~ '^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])([.]([2-9]|[1-9][0-9]{1,2}))?$'
            then make_date(left(p_label, 4)::integer, substr(p_label, 6, 2)::integer, 1)
        when p_label ~ '^(?!0000)[0-9]{4}-W(0[1-9]|[1-4][0-9]|5[0-3])([.]([2-9]|[1-9][0-9]{1,2}))?$'
            -- The 4th of January is always in the first week.
            then date_trunc('week', make_date(left(p_label, 4)::integer, 1, 4)::timestamp)::date
                + 7 * (substr(p_label, 7, 2)::integer - 1)
        when p_label ~ '^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$'
            then make_date(left(p_label, 4)::integer, substr(p_label, 6, 2)::integer, 1)
                + right(p_label, 2)::integer - 1
    end;
