-- Remembers a caller's name for a message that CONSUME counted, or that RESERVE holds until p_expires_at, with the answer.
create or replace function headroom.remember_key(
    p_user_id uuid, p_key text, p_verb text, p_messages integer, p_used bigint, p_held bigint, p_limit integer, p_billing_period text,
    p_generation bigint, p_expires_at timestamptz, p_at timestamptz
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    insert into headroom.message_keys (
        user_id, key, created_at, generation, messages, used, held, "limit", expires_at, billing_period, verb, status
    ) values (
        p_user_id, p_key, p_at, p_generation, p_messages, p_used, least(p_held, 2147483647), p_limit, p_expires_at,
        p_billing_period, case p_verb when 'reserve' then 'r' else 'c' end,
        case p_verb when 'reserve' then 'h' else 'c' end
    );
end
$$;
revoke all on function
    headroom.remember_key(uuid, text, text, integer, bigint, bigint, integer, text, bigint, timestamptz, timestamptz)
from public;
grant execute on function
    headroom.remember_key(uuid, text, text, integer, bigint, bigint, integer, text, bigint, timestamptz, timestamptz)
to headroom_service;
