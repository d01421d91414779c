-- Takes messages of a billing period from a balance, or gives them back if p_messages is negative. The limit of the
-- period's usage row, to which no balances are attached, changes with them. The caller has locked the row.
create or replace function headroom.charge_balance(
    p_user_id uuid, p_billing_period text, p_key text, p_messages integer
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_bucket constant smallint := headroom.bucket_of(p_user_id);
begin
    update headroom.grants set taken = greatest(taken + p_messages, 0)
    where bucket = v_bucket and user_id = p_user_id and key = p_key and expires_at is not null;
    update public.message_usage
    set granted = nullif(greatest(least(coalesce(granted, 0)::bigint + p_messages, 2147483647), 0), 0),
        "limit" = case
            when "limit" is not null then greatest(least("limit"::bigint + p_messages, 2147483647), 0)
        end
    where bucket = v_bucket and user_id = p_user_id and billing_period = p_billing_period;
end
$$;
