-- Returns the body of a notification in JSON. The names are those of answers over HTTP.
create or replace function headroom.notification_body(
    p_user_id uuid, p_period text, p_plan text, p_state text, p_tier text, p_used integer, p_held integer,
    p_limit integer, p_resets_at timestamptz
) returns text
    language sql stable
    return json_strip_nulls(row_to_json(
        (
            select notification
            from (
                select
                    case p_tier when 'blocked' then 'usage.blocked' else 'usage.crossed' end as type,
                    headroom.instant_text(headroom.now()) as timestamp,
                    (
                        select usage
                        from (
                            select
                                p_user_id as user, p_plan as plan, p_state as state, p_period as period,
                                p_tier as tier, p_used as used, p_held as held, p_limit as "limit",
                                greatest(p_limit::bigint - p_used - p_held, 0) as remaining,
                                headroom.instant_text(p_resets_at) as resets
                        ) as usage
                    ) as data
            ) as notification
        )
    ))::text;
