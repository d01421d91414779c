-- Returns the billing period whose usage row the requesting user sees in message_usage: the open one; without an open
-- one, that of a trial that is over. It is null if there is no such row, as before the first message of a period. A
-- policy calls it once per statement.
create or replace function headroom.requesting_period() returns text
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_user_id constant uuid := headroom.requesting_user();
    v_bucket constant smallint := headroom.bucket_of(v_user_id);
    v_period text;
begin
    if v_user_id is null then
        return null;
    end if;
    -- A usable row is the open one. There is nearly always one, and the view takes longer.
    select usage.billing_period into v_period from public.message_usage as usage
    where usage.bucket = v_bucket and usage.user_id = v_user_id and headroom.is_usable(
        usage.usable_until, usage.updated_at, usage.plan_revision,
        (select revised.revision from headroom.plan_revision as revised), headroom.now()
    )
    limit 1;
    if not found then
        select usage.billing_period into v_period from headroom.usage_rows as usage
        where usage.bucket = v_bucket and usage.user_id = v_user_id and (usage.is_open or usage.is_current)
        order by usage.is_open desc
        limit 1;
    end if;
    return v_period;
end
$$;
