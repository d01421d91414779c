-- Writes one row of the audit log. A change of plan or state that changes nothing is not recorded. The setting
-- headroom.reason has the reason for functions that have no parameter for it, and for manual changes.
create or replace function headroom.record_change(
    p_user_id uuid,
    p_billing_period text,
    p_action text,
    p_before jsonb,
    p_after jsonb,
    p_reason text default null,
    p_event_id text default null
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if p_action in ('plan', 'store_event') and p_before is not distinct from p_after then
        return;
    end if;
    insert into headroom.audit_log (bucket, at, user_id, billing_period, action, before, after, reason, event_id, actor)
    values (
        coalesce(headroom.bucket_of(p_user_id), 0), headroom.now(), p_user_id, p_billing_period, p_action, p_before,
        p_after, coalesce(p_reason, nullif(current_setting('headroom.reason', true), '')), p_event_id, headroom.actor()
    );
end
$$;
