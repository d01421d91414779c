-- Returns the tables whose rows are divided into buckets by their user_id. Subscribers come first, because each
-- transaction that locks several rows of a user begins with that one.
create or replace function headroom.divided_tables() returns text[]
    language sql immutable
    return array[
        'headroom.subscribers', 'headroom.subscriptions', 'public.message_usage', 'headroom.usage_parts',
        'headroom.message_keys', 'headroom.grants', 'headroom.audit_log'
    ];
