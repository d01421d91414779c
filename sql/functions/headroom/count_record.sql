-- What the form of increment_and_check_usage with a period and a limit answers.
create or replace function headroom.count_record(
    p_is_allowed boolean, p_used bigint, p_held bigint, p_limit integer
) returns jsonb
    language sql immutable parallel safe
    return jsonb_build_object(
        'allowed', p_is_allowed,
        'current_count', p_used,
        'limit', p_limit,
        'remaining', greatest(p_limit::bigint - p_used - p_held, 0)
    );
revoke all on function headroom.count_record(boolean, bigint, bigint, integer) from public;
grant execute on function headroom.count_record(boolean, bigint, bigint, integer) to headroom_service;
