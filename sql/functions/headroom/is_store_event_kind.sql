-- Whether a kind of store event is one that changes a subscription.
create or replace function headroom.is_store_event_kind(p_kind text) returns boolean
    language sql immutable parallel safe
    return p_kind in (
        'purchased', 'renewed', 'cancelled', 'uncancelled', 'grace_period', 'billing_retry', 'expired', 'revoked',
        'reinstated', 'product_changed', 'extended'
    );
revoke all on function headroom.is_store_event_kind(text) from public;
grant execute on function headroom.is_store_event_kind(text) to headroom_service;
