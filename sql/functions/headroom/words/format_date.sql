-- Returns a date as sentences say it: December 1. In UTC.
create or replace function headroom.format_date(p_date timestamptz, p_languages text[]) returns text
    language sql stable
begin atomic
    select replace(
        replace(headroom.template_of('date', p_languages, utc.day), '{month}', headroom.template_of(
            'month_' || extract(month from utc.date)::text, p_languages, null
        )),
        '{day}', utc.day::text
    )
    from (
        select at.date, extract(day from at.date)::bigint as day from (select p_date at time zone 'UTC' as date) as at
    ) as utc;
end;
