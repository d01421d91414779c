-- Trigger function: records a manual change in the audit log, with the changed columns and those that identify the row.
-- It refuses values of message_usage that values_are_in_range lets pass, and gives a row whose count was lowered by
-- hand a new generation. The id of a member is not recorded: the log is that of the account, and would keep the id of
-- a member who is forgotten.
--
-- The triggers on message_usage, usage_parts, subscribers and subscriptions do not fire for headroom_service, which
-- counts, and for headroom_owner: its functions record their own changes, and its triggers change what follows from a
-- recorded change.
create or replace function headroom.record_manual_change() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_table constant text := headroom.table_of_shard(tg_table_name);
    v_before jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
    v_after jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
    v_identifying constant text[] := case v_table
        when 'message_usage' then array['billing_period', 'message_count', 'limit']
        when 'usage_parts' then array['billing_period', 'kind', 'name', 'used', 'limit']
        when 'subscriptions' then array['original_transaction_id', 'plan']
        when 'plans' then array['plan']
        when 'plan_limits' then array['plan', 'kind', 'name']
        when 'words' then array['lang', 'word']
        when 'store_products' then array['source', 'product']
        when 'store_entitlements' then array['source', 'entitlement']
        else '{}'
    end;
    v_user_before constant text := v_before ->> 'user_id';
    v_user_after constant text := v_after ->> 'user_id';
    v_recorded_before jsonb;
    v_recorded_after jsonb;
    -- It is a variable, because Citus sends no UPDATE that calls nextval.
    v_generation bigint;
begin
    if v_table = 'message_usage' and tg_op = 'UPDATE' then
        if least(new.message_count, new.held, new.window_count, new.window_held) < 0
            or not headroom.is_instant(new.updated_at) then
            perform headroom.raise_invalid_row('public.message_usage', v_after, 'check_violation');
        elsif new.message_count < old.message_count and new.released = old.released then
            v_generation := headroom.next_generation();
            update public.message_usage
            set generation = v_generation,
                released = least(released::bigint + old.message_count - new.message_count, 2147483647)
            where bucket = new.bucket and user_id = new.user_id and billing_period = new.billing_period;
        end if;
        if old.extra is not null
            and (new.message_count <> old.message_count or new."limit" is distinct from old."limit") then
            perform headroom.follow_manual_change(
                new.user_id, new.billing_period, old.message_count, old.held, old."limit", old.extra,
                old.extra_expires, old.usable_count
            );
        end if;
    elsif v_table = 'usage_parts' then
        if tg_op = 'UPDATE' and new.used < old.used and new.generation = old.generation then
            v_generation := headroom.next_generation();
            update headroom.usage_parts set generation = v_generation
            where bucket = new.bucket and user_id = new.user_id and billing_period = new.billing_period
                and kind = new.kind and name = new.name;
        end if;
        if coalesce(v_after, v_before) ->> 'kind' = 'member' then
            v_before := v_before - 'name';
            v_after := v_after - 'name';
        end if;
    end if;
    if v_user_before is null and v_user_after is null and not headroom.is_first_copy() then
        return null;
    end if;
    select
        jsonb_object_agg(name, v_before -> column_name) filter (where v_before is not null),
        jsonb_object_agg(name, v_after -> column_name) filter (where v_after is not null)
    into v_recorded_before, v_recorded_after
    from jsonb_object_keys(coalesce(v_after, v_before)) as columns (column_name)
    cross join lateral (
        select case column_name
            when 'billing_period' then 'period'
            when 'message_count' then 'count'
            else column_name
        end as name
    ) as names
    where column_name not in ('user_id', 'bucket')
        and (
            column_name = any(v_identifying)
            or v_table not in ('message_usage', 'usage_parts') and tg_op <> 'UPDATE'
            or tg_op = 'UPDATE' and v_before -> column_name is distinct from v_after -> column_name
        );
    if v_user_before <> v_user_after then
        -- A row that was moved to another user is recorded for both users, without the other one's id.
        perform headroom.record_change(
            v_user_before::uuid, v_before ->> 'billing_period', 'delete', v_recorded_before, null
        );
        v_recorded_before := null;
    end if;
    perform headroom.record_change(
        coalesce(v_user_after, v_user_before)::uuid, coalesce(v_after, v_before) ->> 'billing_period',
        case when v_user_before <> v_user_after then 'insert' else lower(tg_op) end, v_recorded_before, v_recorded_after
    );
    return null;
end
$$;
