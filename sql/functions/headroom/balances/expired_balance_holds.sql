-- Returns what expired holds of a user have taken from balances and not given back yet (headroom.detach_balances): a
-- row for each hold and balance. hold: the key of the message. key: that of the balance.
create or replace function headroom.expired_balance_holds(p_user_id uuid, p_at timestamptz) returns table (
    hold text, billing_period text, key text, messages integer
)
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return query
    select keys.key, keys.billing_period, charge.key, charge.value::integer
    from headroom.message_keys as keys
    cross join lateral jsonb_each_text(keys.parts -> 'charges') as charge
    where keys.bucket = headroom.bucket_of(p_user_id) and keys.user_id = p_user_id
        and keys.expires_at <= p_at and keys.status = 'h' and keys.parts ? 'charges';
end
$$;
