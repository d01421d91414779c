-- Corrects what was counted of a user's models and members while the clock was ahead, as headroom.correct_clock_jump
-- does for the user: messages of p_later count in p_billing_period, and those of windows that opened more than an hour
-- after p_at count in the window that is open, or otherwise in one that opens at p_at. Updates the keys.
--
-- p_later: the billing periods whose usage rows the caller then deletes, or null. The caller has locked the subscriber
-- and the usage rows.
create or replace function headroom.correct_parts(
    p_user_id uuid, p_billing_period text, p_later text[], p_at timestamptz
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_latest constant timestamptz := p_at + interval '1 hour';
    v_part record;
    v_window headroom.usage_parts;
    v_opened_at timestamptz;
    v_period text;
    v_generation bigint;
begin
    for v_part in
        select
            one.kind, one.name, max(one."limit") as "limit", max(one.window_limit) as window_limit,
            bool_or(one.is_later) as is_later,
            coalesce(sum(one.used) filter (where one.is_later), 0) as used,
            coalesce(sum(one.held) filter (where one.is_later), 0) as held,
            array_agg(one.window_opened_at) filter (where one.window_opened_at > v_latest) as opened_at,
            max(one.window_ends_at - one.window_opened_at) filter (where one.window_opened_at > v_latest) as length,
            coalesce(sum(one.window_used) filter (where one.window_opened_at > v_latest), 0) as window_used,
            coalesce(sum(one.window_held) filter (where one.window_opened_at > v_latest), 0) as window_held,
            max(one.billing_period) as billing_period
        from (
            select parts.*, parts.billing_period = any(coalesce(p_later, '{}')) as is_later
            from headroom.usage_parts as parts
            where parts.bucket = headroom.bucket_of(p_user_id) and parts.user_id = p_user_id
        ) as one
        where one.is_later or one.window_opened_at > v_latest
            or one.billing_period = p_billing_period and one.updated_at > v_latest
        group by one.kind, one.name
        order by one.kind, one.name
    loop
        select parts.* into v_window from headroom.usage_parts as parts
        where parts.bucket = headroom.bucket_of(p_user_id) and parts.user_id = p_user_id
            and parts.kind = v_part.kind and parts.name = v_part.name
            and parts.window_opened_at <= v_latest and parts.window_ends_at > p_at
        order by parts.window_opened_at desc
        limit 1;
        if v_part.opened_at is not null then
            v_window.window_opened_at := coalesce(v_window.window_opened_at, p_at);
            v_window.window_ends_at := coalesce(v_window.window_ends_at, p_at + v_part.length);
            foreach v_opened_at in array v_part.opened_at loop
                perform headroom.move_part_window(
                    p_user_id, v_part.kind, v_part.name, v_opened_at, v_window.window_opened_at
                );
            end loop;
            v_window.window_used := least(v_part.window_used + coalesce(v_window.window_used, 0), 2147483647);
            v_window.window_held := least(v_part.window_held + coalesce(v_window.window_held, 0), 2147483647);
        end if;
        if v_window.window_opened_at is not null then
            update headroom.usage_parts
            set window_opened_at = null, window_ends_at = null, window_used = null, window_held = null
            where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and kind = v_part.kind
                and name = v_part.name
                and (window_opened_at = any(v_part.opened_at) or billing_period = v_window.billing_period);
        end if;
        v_period := case
            when v_part.is_later or exists (
                select from public.message_usage as usage
                where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
                    and usage.billing_period = p_billing_period
            ) then p_billing_period
            else v_part.billing_period
        end;
        -- It is a variable, because Citus sends no INSERT that calls nextval.
        v_generation := headroom.next_generation();
        -- What is held is computed again with the next message: holds got their remaining time again.
        insert into headroom.usage_parts as parts (
            bucket, user_id, billing_period, kind, name, generation, updated_at, used, held, "limit", window_opened_at,
            window_ends_at, window_used, window_held, window_limit, holds_end_at
        ) values (
            headroom.bucket_of(p_user_id), p_user_id, v_period, v_part.kind, v_part.name, v_generation, p_at,
            least(v_part.used, 2147483647), least(v_part.held, 2147483647), v_part."limit", v_window.window_opened_at,
            v_window.window_ends_at, v_window.window_used, v_window.window_held, v_part.window_limit, p_at
        )
        on conflict (bucket, user_id, billing_period, kind, name) do update
        set used = least(parts.used::bigint + excluded.used, 2147483647),
            held = least(parts.held::bigint + excluded.held, 2147483647), updated_at = excluded.updated_at,
            window_opened_at = excluded.window_opened_at, window_ends_at = excluded.window_ends_at,
            window_used = excluded.window_used, window_held = excluded.window_held,
            holds_end_at = excluded.holds_end_at
        returning parts.generation into v_generation;
        update headroom.message_keys
        set parts = jsonb_set(parts, array[v_part.kind, 'generation'], to_jsonb(v_generation))
        where bucket = headroom.bucket_of(p_user_id) and user_id = p_user_id and billing_period = any(p_later)
            and parts #>> array[v_part.kind, 'counter'] = v_part.name;
    end loop;
end
$$;
