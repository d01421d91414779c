-- Returns the JSON answer of increment_and_check_usage to callers that name a period and a limit. A null limit is
-- unlimited. A user without access has 0 messages remaining.
create or replace function headroom.count_result(
    p_is_allowed boolean, p_used bigint, p_held bigint, p_limit integer, p_has_no_access boolean default false
) returns jsonb
    language sql immutable parallel safe
    return jsonb_build_object(
        'allowed', p_is_allowed,
        'current_count', p_used,
        'limit', p_limit,
        'remaining', case
            when p_has_no_access then 0
            when p_limit is not null then greatest(p_limit::bigint - p_used - p_held, 0)
        end
    );
