-- Raises no_data_found if there is no plan named p_plan. Null is valid.
create or replace function headroom.check_plan(p_plan text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if p_plan is not null and not exists (select from headroom.plans as plans where plans.plan = p_plan) then
        raise exception 'there is no plan %', quote_literal(p_plan)
            using errcode = 'no_data_found', hint = 'select plan from headroom.plans lists them.';
    end if;
end
$$;
