-- Returns the cycle of the plans that have a period of this label: monthly, weekly or daily. It is null for other
-- labels, such as the name of a plan that never resets.
--
-- It is in PL/pgSQL, because PostgreSQL would copy a function in SQL into each query that uses it, which makes the
-- start of headroom.entitlements a tenth slower.
create or replace function headroom.label_cycle(p_label text) returns text
    language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp
as $$
declare
    v_base constant text := split_part(p_label, '.', 1);
    v_cycle constant text := case length(v_base) when 7 then 'monthly' when 8 then 'weekly' when 10 then 'daily' end;
begin
    -- A text of another form has no cycle, and neither has a day or a week that does not exist.
    return case when v_base = headroom.period_label(v_cycle, headroom.label_day(p_label)) then v_cycle end;
end
$$;
