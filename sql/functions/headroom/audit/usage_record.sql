-- Returns what the audit log records of a usage row; null without a row (p_count is null).
create or replace function headroom.usage_record(p_billing_period text, p_count integer, p_limit integer) returns jsonb
    language sql stable
    return case when p_count is not null then pg_catalog.jsonb_build_object(
        'period', p_billing_period, 'count', p_count, 'limit', p_limit
    ) end;
