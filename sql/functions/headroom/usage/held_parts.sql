-- Returns the number of messages that a user's holds reserve of a limit for a part of the messages (p_kind and p_name,
-- columns of headroom.usage_parts), in a billing period and in the window that opened at p_window_opened_at, and when
-- the first of these holds expires (null without holds). Holds that have expired at p_at do not count.
create or replace function headroom.held_parts(
    p_user_id uuid, p_billing_period text, p_kind text, p_name text, p_window_opened_at timestamptz, p_at timestamptz,
    out held integer, out window_held integer, out ends_at timestamptz
)
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    -- Keys have the window in microseconds since 1970.
    v_window constant bigint := extract(epoch from p_window_opened_at) * 1000000;
begin
    select
        least(coalesce(sum(holds.messages) filter (where holds.is_of_period), 0), 2147483647),
        least(coalesce(sum(holds.messages) filter (where holds.is_of_window), 0), 2147483647),
        min(holds.expires_at) filter (where holds.is_of_period or holds.is_of_window)
    into held, window_held, ends_at
    from (
        select
            -- A key has the messages of the user's allowance; a message with a model takes several of those.
            keys.messages / case
                when p_kind = 'model' then coalesce((keys.parts ->> 'weight')::integer, 1) else 1
            end as messages,
            keys.expires_at,
            keys.billing_period = p_billing_period as is_of_period,
            (keys.parts #>> array[p_kind, 'window'])::bigint = v_window as is_of_window
        from headroom.message_keys as keys
        where keys.bucket = headroom.bucket_of(p_user_id) and keys.user_id = p_user_id
            and keys.status = 'h' and keys.expires_at > p_at
            and keys.parts #>> array[p_kind, 'counter'] = p_name
    ) as holds;
end
$$;
