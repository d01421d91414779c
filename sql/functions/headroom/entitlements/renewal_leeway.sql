-- Returns for how long a subscription that renews keeps access after the end of the paid time, from the setting
-- headroom.renewal_leeway: 0 to 3 days. The service sets it for its own connections. For psql and PostgREST, an
-- operator does: alter database … set headroom.renewal_leeway = '2h'.
create or replace function headroom.renewal_leeway() returns interval
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_setting constant text := coalesce(nullif(current_setting('headroom.renewal_leeway', true), ''), '1h');
    v_leeway interval;
begin
    v_leeway := v_setting::interval;
    if v_leeway < interval '0' or v_leeway > interval '72 hours' then
        raise exception 'headroom.renewal_leeway is %, not 0 to 3 days', quote_literal(v_setting)
            using errcode = 'invalid_parameter_value';
    end if;
    -- The result has no days, which depend on the session's time zone.
    return make_interval(secs => extract(epoch from v_leeway)::double precision);
end
$$;
