-- Returns a usage snapshot with the messages that are left in balances, which its limit then includes. If more than the
-- limit is counted, as after a change to a smaller plan, these can be sent beyond that count. p_balances:
-- headroom.live_balances, or null.
create or replace function headroom.add_balances(
    p_snapshot headroom.usage_snapshot, p_balances headroom.balance[]
) returns headroom.usage_snapshot
    language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp
as $$
declare
    v_snapshot headroom.usage_snapshot := p_snapshot;
    v_extra bigint := 0;
    v_balance headroom.balance;
begin
    foreach v_balance in array coalesce(p_balances, '{}') loop
        if v_extra = 0 and v_balance.messages > 0 then
            v_snapshot.extra_expires := nullif(v_balance.expires_at, 'infinity');
        end if;
        v_extra := v_extra + v_balance.messages;
    end loop;
    if v_extra = 0 then
        return p_snapshot;
    end if;
    v_snapshot.extra := least(v_extra, 2147483647);
    if p_snapshot."limit" is not null then
        v_snapshot."limit" := least(
            greatest(p_snapshot."limit", p_snapshot.used::bigint + p_snapshot.held) + v_extra, 2147483647
        );
    end if;
    return v_snapshot;
end
$$;
