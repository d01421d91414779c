-- Returns the rows of public.monthly_usage of the requesting user.
create or replace function headroom.requesting_usage() returns table (
    user_id uuid, billing_period text, plan text, state text, used integer, held integer, "limit" integer,
    remaining integer, tier text, resets_at timestamptz, expires_at timestamptz, updated_at timestamptz,
    is_open boolean
)
    language plpgsql stable rows 12 security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_user_id constant uuid := headroom.requesting_user();
begin
    if v_user_id is not null then
        return query select usage.* from headroom.monthly_usage as usage where usage.user_id = v_user_id;
    end if;
end
$$;
