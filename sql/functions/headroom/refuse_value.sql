-- Raises HR006: a row holds a value that its table's check constraint does not allow, so somebody has removed the
-- constraint. The message names the column only, because the service logs each message once.
--
-- p_condition: what every row must fulfil, as an expression of the table's columns.
create or replace function headroom.refuse_value(p_table text, p_column text, p_condition text, p_value text) returns void
    language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception '%.% is out of range', p_table, p_column
        using errcode = 'HR006', detail = 'The value is ' || coalesce(p_value, 'null') || '.', hint = format(
            'select * from %s where (%s) is not true lists such rows. Correct them, then add the table''s check constraint '
            'again.', p_table, p_condition
        );
end
$$;
revoke all on function headroom.refuse_value(text, text, text, text) from public;
grant execute on function headroom.refuse_value(text, text, text, text) to headroom_service;
