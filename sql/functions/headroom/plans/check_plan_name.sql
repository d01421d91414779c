-- Trigger function: refuses a plan named window. RESETUSAGE and reset_usage take that word for the open window, and
-- names of plans that never reset are labels of periods.
create or replace function headroom.check_plan_name() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if new.plan = 'window' then
        raise exception 'a plan cannot be named window' using errcode = 'check_violation',
            hint = 'reset_usage(…, ''window'') closes the open window. Choose another name, and the label freely.';
    end if;
    return new;
end
$$;
