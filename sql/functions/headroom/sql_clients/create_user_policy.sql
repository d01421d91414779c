-- Creates the policy of message_usage that shows users their own rows.
create or replace function headroom.create_user_policy() returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    execute format(
        'create policy headroom_user on public.message_usage for select to %s using (%s)',
        headroom.user_roles(),
        case
            -- Citus distributes no policy with a subquery.
            when headroom.is_distributed() then 'user_id = headroom.requesting_user()'
            -- In a subquery the function is called once per statement, not per row.
            else 'user_id = (select headroom.requesting_user())'
        end
    );
end
$$;
