-- Raises HR006 where a key's row holds a number that the check constraints of headroom.message_keys do not allow: nothing
-- is computed with it. A null row passes.
create or replace function headroom.check_key(p_key headroom.message_keys) returns void
    language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    v_column constant text := case
        when p_key.used < 0 then 'used'
        when p_key.held < 0 then 'held'
        when p_key."limit" < 0 then 'limit'
        when p_key.committed_used < 0 then 'committed_used'
        when p_key.committed_held < 0 then 'committed_held'
        when p_key.committed_limit < 0 then 'committed_limit'
    end;
begin
    if p_key.messages not between 1 and 1000000 then
        perform headroom.refuse_value(
            'headroom.message_keys', 'messages', 'messages between 1 and 1000000', p_key.messages::text
        );
    elsif v_column is not null then
        perform headroom.refuse_value(
            'headroom.message_keys', v_column, format('coalesce(%I, 0) >= 0', v_column), to_jsonb(p_key) ->> v_column
        );
    end if;
end
$$;
revoke all on function headroom.check_key(headroom.message_keys) from public;
grant execute on function headroom.check_key(headroom.message_keys) to headroom_service;
