-- Returns a user's usage snapshot now; null if it is about another period than p_billing_period, unless that is null.
-- Views call it, because their readers may not read the tables.
--
-- It is also null if a row of the user has an invalid value, so that a report of all users does not fail.
create or replace function headroom.current_snapshot(p_user_id uuid, p_billing_period text)
    returns headroom.usage_snapshot
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_snapshot headroom.usage_snapshot;
begin
    v_snapshot := headroom.read_usage_snapshot(p_user_id, headroom.unknown_users_policy());
    return case when v_snapshot.billing_period = coalesce(p_billing_period, v_snapshot.billing_period)
        then v_snapshot
    end;
exception
    -- HR006 is an invalid row (headroom.raise_invalid_row); raise_exception, that users without a subscription have no
    -- plan; invalid_parameter_value, that PostgreSQL does not know the plan's time zone any more.
    when sqlstate 'HR006' or raise_exception or invalid_parameter_value then
        return null;
end
$$;
