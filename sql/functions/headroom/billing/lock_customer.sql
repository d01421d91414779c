-- Returns the customer that has these distinct names, and locks its row until the transaction ends. Creates a customer
-- if none has them. If several customers have them, merges these into the one with the lowest number. Call it before
-- any function that locks a user.
create or replace function headroom.lock_customer(p_names text[]) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_locked_ids bigint[];
    v_ids_under_lock bigint[];
    v_customer_id bigint;
    v_missing_count bigint;
    v_inserted_count bigint := 0;
begin
    -- Each attempt waits for another session that writes the same names. 100 attempts mean that a row is discarded.
    for v_attempt in 1 .. 100 loop
        begin
            v_locked_ids := array(
                select customers.customer_id from headroom.customers as customers
                where customers.customer_id = any(array(
                    select names.customer_id from headroom.customer_names as names where names.name = any(p_names)
                ))
                order by customers.customer_id
                for update
            );
            v_customer_id := v_locked_ids[1];
            if v_customer_id is null then
                insert into headroom.customers default values returning customer_id into v_customer_id;
            end if;
            select coalesce(array_agg(distinct names.customer_id order by names.customer_id), '{}'),
                cardinality(p_names) - count(*)
            into v_ids_under_lock, v_missing_count
            from headroom.customer_names as names where names.name = any(p_names);
            if v_ids_under_lock = v_locked_ids and v_missing_count > 0 then
                insert into headroom.customer_names (name, customer_id)
                select name, v_customer_id from unnest(p_names) as names (name) order by name
                on conflict (name) do nothing;
                get diagnostics v_inserted_count = row_count;
            end if;
            -- Another session has merged these customers or has taken a name. The exception releases the locks, because
            -- the next one may be a customer with a lower number, and all sessions lock in ascending order.
            if v_ids_under_lock <> v_locked_ids or v_missing_count > v_inserted_count then
                raise exception 'customers have changed' using errcode = 'HR007';
            end if;
            exit;
        exception
            when sqlstate 'HR007' then
                v_inserted_count := 0;
                v_customer_id := null;
        end;
    end loop;
    if v_customer_id is null then
        raise exception 'names of a customer that were inserted are not in headroom.customer_names'
            using errcode = 'HR011',
                hint = 'A trigger or a rule discards them: \d headroom.customer_names lists them. Drop it.';
    end if;
    if cardinality(v_locked_ids) > 1 then
        update headroom.customer_names as names set customer_id = v_customer_id
        where names.customer_id = any(v_locked_ids[2:]);
        update headroom.billing_events as events set customer_id = v_customer_id
        where events.customer_id = any(v_locked_ids[2:]);
        delete from headroom.customers as customers where customers.customer_id = any(v_locked_ids[2:]);
    end if;
    return v_customer_id;
end
$$;
