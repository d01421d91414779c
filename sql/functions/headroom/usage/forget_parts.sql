-- Deletes what was counted of parts of a user's messages, and of this user as a member of other accounts, and takes the
-- user's id off the keys and transfers of these; the keys' numbers, which are the accounts', stay. Returns the number
-- of rows. Locks the subscribers of the user and of these accounts, then their usage rows, both in ascending order as
-- batches do.
create or replace function headroom.forget_parts(p_user_id uuid) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_member constant text := p_user_id::text;
    v_counting uuid[];
    v_keeping uuid[];
    v_users uuid[];
    v_user uuid;
    v_count bigint;
    v_rows bigint := 0;
begin
    perform headroom.await_division();
    select array_agg(parts.user_id) into v_counting
    from headroom.usage_parts as parts
    where parts.kind = 'member' and parts.name = v_member;
    select array_agg(keys.user_id) into v_keeping
    from headroom.message_keys as keys
    where keys.parts ? 'member' and keys.parts #>> '{member,name}' = v_member;
    v_users := array(
        select distinct account.user_id from unnest(v_counting || v_keeping || p_user_id) as account (user_id)
        order by account.user_id
    );
    foreach v_user in array v_users loop
        perform headroom.lock_subscribers_of(headroom.bucket_of(v_user), array[v_user]);
    end loop;
    foreach v_user in array v_users loop
        perform from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(v_user) and usage.user_id = v_user
        order by usage.billing_period for update;
    end loop;
    foreach v_user in array v_users loop
        delete from headroom.usage_parts as parts
        where parts.bucket = headroom.bucket_of(v_user) and parts.user_id = v_user
            and (v_user = p_user_id or parts.kind = 'member' and parts.name = v_member);
        get diagnostics v_count = row_count;
        v_rows := v_rows + v_count;
        update headroom.message_keys as keys set parts = keys.parts - 'member'
        where keys.bucket = headroom.bucket_of(v_user) and keys.user_id = v_user
            and keys.parts ? 'member' and keys.parts #>> '{member,name}' = v_member and v_user <> p_user_id;
        get diagnostics v_count = row_count;
        v_rows := v_rows + v_count;
        update headroom.usage_transfers as transfers
        set raised = replace(transfers.raised::text, v_member, 'forgotten')::jsonb,
            raised_window = replace(transfers.raised_window::text, v_member, 'forgotten')::jsonb
        where transfers.receiver = v_user and strpos(concat(transfers.raised, transfers.raised_window), v_member) > 0;
        get diagnostics v_count = row_count;
        v_rows := v_rows + v_count;
    end loop;
    return v_rows;
end
$$;
