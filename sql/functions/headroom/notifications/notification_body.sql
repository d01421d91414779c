-- Returns the body of a notification in JSON. The names are those of answers over HTTP, but for allowance, model_label
-- and window_seconds.
create or replace function headroom.notification_body(p_crossed headroom.crossed_allowance) returns text
    language sql stable
    return json_strip_nulls(row_to_json(
        (
            select notification
            from (
                select
                    case (p_crossed).tier when 'blocked' then 'usage.blocked' else 'usage.crossed' end as type,
                    headroom.instant_text(headroom.now()) as timestamp,
                    (
                        select usage
                        from (
                            select
                                (p_crossed).user_id as user, (p_crossed).plan as plan, (p_crossed).state as state,
                                (p_crossed).billing_period as period, (p_crossed).allowance as allowance,
                                case (p_crossed).allowance when 'model' then (p_crossed).part end as model,
                                (p_crossed).label as model_label,
                                case (p_crossed).allowance when 'member' then (p_crossed).part end as member,
                                (p_crossed).window_seconds as window_seconds, (p_crossed).tier as tier,
                                (p_crossed).used as used, (p_crossed).held as held, (p_crossed)."limit" as "limit",
                                greatest((p_crossed)."limit"::bigint - (p_crossed).used - (p_crossed).held, 0)
                                as remaining,
                                headroom.instant_text((p_crossed).resets_at) as resets
                        ) as usage
                    ) as data
            ) as notification
        )
    ))::text;
