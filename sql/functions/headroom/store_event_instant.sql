-- An instant of an event, in the form that the line protocol takes: 2026-11-24 (midnight UTC) or 2026-11-24T09:30:00Z.
-- Without an offset it would mean something else in each session's time zone.
create or replace function headroom.store_event_instant(p_field text, p_text text) returns timestamptz
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_instant timestamptz;
begin
    if length(p_text) > 32
        or p_text !~ '^\d{4}-\d\d-\d\d(T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-](0\d|1[0-5]):[0-5]\d))?$'
    then
        raise exception '% is not an instant', quote_literal(p_field)
            using errcode = 'invalid_parameter_value',
                hint = 'Write 2026-11-24T09:30:00Z, or 2026-11-24 for its midnight in UTC.';
    end if;
    begin
        v_instant := case when length(p_text) = 10 then p_text || 'T00:00:00Z' else p_text end::timestamptz;
    exception when datetime_field_overflow or invalid_datetime_format then
        raise exception '% is a day that does not exist', quote_literal(p_field)
            using errcode = 'invalid_parameter_value';
    end;
    if v_instant < '1970-01-01T00:00:00Z' or v_instant >= '10000-01-01T00:00:00Z' then
        raise exception '% must be in the years 1970 to 9999', quote_literal(p_field)
            using errcode = 'invalid_parameter_value';
    end if;
    return v_instant;
end
$$;
revoke all on function headroom.store_event_instant(text, text) from public;
grant execute on function headroom.store_event_instant(text, text) to headroom_service;
