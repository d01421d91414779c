-- Records that a transaction of a store, or a customer by the store's own id, belongs to a user, as a billing event
-- that is not applied yet. Returns the event's id. `headroom customer link` and the service apply it in the same
-- transaction. `headroom events replay` applies one that was recorded in psql. Each of them refuses a link that
-- contradicts the store's own events. Another call before that, for the same transaction or customer, replaces it.
--
-- p_name: an original transaction that an event of p_source names, otherwise the store's id of a customer. Raises
-- no_data_found if there is neither. Locks the customer.
create or replace function headroom.link_customer(p_source text, p_name text, p_user_id uuid) returns text
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_transaction constant text := p_source || ':transaction:' || p_name;
    v_digest constant text := 'sha256:' || encode(sha256(convert_to(p_name, 'UTF8')), 'hex');
    v_name text;
    v_subject jsonb;
    v_customer_id bigint;
    v_event_id text;
begin
    perform headroom.check_store_name('name', p_source, p_name);
    if p_user_id is null then
        raise exception 'p_user_id is null: pass the user''s uuid' using errcode = 'null_value_not_allowed';
    end if;
    select names.name into v_name from headroom.customer_names as names
    where names.name in (v_transaction, p_source || ':' || v_digest)
    order by names.name = v_transaction desc limit 1;
    if v_name is null then
        if not exists (select from headroom.billing_events as events where events.source = p_source) then
            raise exception 'no event of this source is recorded'
                using errcode = 'no_data_found',
                    hint = 'The source of an event is in headroom events list, such as revenuecat, appstore or stripe.';
        elsif p_name ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
            raise exception 'no event of this source has it as a transaction, and a UUID is itself a user'
                using errcode = 'no_data_found',
                    hint = 'Only the store can transfer what that user owns.';
        end if;
        raise exception
            'no event of this source names it, neither as an original transaction nor, by its SHA-256, as a customer id'
            using errcode = 'no_data_found',
                hint = 'headroom events list --failed has the events without a user, events show their transactions.';
    end if;
    v_customer_id := headroom.lock_customer(array[v_name, 'user:' || p_user_id]);
    v_subject := case
        when v_name = v_transaction then jsonb_build_object('transaction', p_name)
        else jsonb_build_object('customer', v_digest)
    end;
    select events.id into v_event_id from headroom.billing_events as events
    where events.customer_id = v_customer_id and events.source = p_source and events.outcome = 'failed'
        and events.payload -> 'link' @> v_subject
    order by events.id limit 1;
    v_event_id := coalesce(v_event_id, 'link:' || gen_random_uuid());
    perform headroom.write_billing_event(
        jsonb_build_object(
            'source', p_source, 'id', v_event_id, 'customer', v_customer_id, 'type', 'LINK', 'at', headroom.now(),
            'identities', jsonb_build_array(p_user_id), 'effects', '[]'::jsonb, 'user', p_user_id, 'outcome', 'failed',
            'problem', format('it is not applied yet. Run headroom events replay %s %s.', p_source, v_event_id),
            'payload', jsonb_build_object(
                'link', v_subject || jsonb_build_object('id', v_event_id, 'at', headroom.now(), 'user', p_user_id)
            )
        ),
        null
    );
    perform headroom.record_change(
        p_user_id, null, 'store_event', null, v_subject || jsonb_build_object('link', p_source), null, v_event_id
    );
    return v_event_id;
end
$$;
