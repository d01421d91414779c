-- Returns a date as sentences say it: December 1. In UTC; empty without a date.
create or replace function headroom.format_date(p_date timestamptz, p_languages text[]) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_day constant integer := extract(day from p_date at time zone 'UTC');
    v_month constant integer := extract(month from p_date at time zone 'UTC');
begin
    if p_date is null then
        return '';
    end if;
    return replace(
        replace(
            headroom.template_of('date', p_languages, v_day),
            '{month}', headroom.template_of('month_' || v_month, p_languages, null)
        ),
        '{day}', v_day::text
    );
end
$$;
