-- Returns a time as sentences say it: in minutes, rounded up, by its largest unit and the one below: 2 hours 10
-- minutes. Empty without a time.
create or replace function headroom.format_wait(p_seconds bigint, p_languages text[]) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_minutes constant bigint := greatest(1, (greatest(p_seconds, 0) + 59) / 60);
    v_unit text := 'minutes';
    v_larger bigint := v_minutes;
    v_unit_below text;
    v_smaller bigint := 0;
    v_text text;
begin
    if p_seconds is null then
        return '';
    elsif v_minutes >= 1440 then
        v_unit := 'days';
        v_larger := v_minutes / 1440;
        v_unit_below := 'hours';
        v_smaller := v_minutes % 1440 / 60;
    elsif v_minutes >= 60 then
        v_unit := 'hours';
        v_larger := v_minutes / 60;
        v_unit_below := 'minutes';
        v_smaller := v_minutes % 60;
    end if;
    v_text := replace(headroom.template_of(v_unit, p_languages, v_larger), '{n}', v_larger::text);
    if v_smaller = 0 then
        return v_text;
    end if;
    return replace(
        replace(headroom.template_of('wait_joined', p_languages, null), '{larger}', v_text),
        '{smaller}',
        replace(headroom.template_of(v_unit_below, p_languages, v_smaller), '{n}', v_smaller::text)
    );
end
$$;
