-- Subtracts what headroom.transfer_parts has added in a billing period, unless the part was reset since then. p_raised:
-- the result of that function. The caller has locked the receiver's usage row.
create or replace function headroom.revert_transferred_parts(
    p_receiver uuid, p_billing_period text, p_raised jsonb
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_part record;
begin
    for v_part in
        select raised.* from jsonb_to_recordset(coalesce(p_raised, '[]')) as raised (
            kind text, name text, messages integer, generation bigint
        )
    loop
        update headroom.usage_parts
        set used = greatest(used - v_part.messages, 0), updated_at = headroom.now()
        where bucket = headroom.bucket_of(p_receiver) and user_id = p_receiver and billing_period = p_billing_period
            and kind = v_part.kind and name = v_part.name and generation = v_part.generation;
    end loop;
end
$$;
