-- What the audit log keeps of a usage row.
create or replace function headroom.usage_record(p_row public.message_usage) returns jsonb
    language sql stable
    return case when (p_row).user_id is not null then pg_catalog.jsonb_build_object(
        'period', (p_row).billing_period, 'count', (p_row).message_count, 'limit', (p_row)."limit"
    ) end;
revoke all on function headroom.usage_record(public.message_usage) from public;
grant execute on function headroom.usage_record(public.message_usage) to headroom_service;
