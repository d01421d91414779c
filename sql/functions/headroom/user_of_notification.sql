-- The user whom a notification concerns, as far as that is known.
create or replace function headroom.user_of_notification(p_notification headroom.store_notifications) returns uuid
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_source constant text := p_notification.source;
    v_effect jsonb;
    v_user_id uuid;
begin
    for v_effect in select * from jsonb_array_elements(p_notification.effects) loop
        select headroom.user_of_person(owners.person) into v_user_id
        from headroom.store_owners as owners
        where owners.source = v_source and owners.transaction = v_effect ->> 'transaction'
        order by owners.step desc limit 1;
        v_user_id := coalesce(
            v_user_id,
            (
                select events.user_id from headroom.store_events as events
                where events.source = v_source and events.original_transaction_id = v_effect ->> 'transaction'
                    and events.user_id is not null
                order by events.event_at desc limit 1
            ),
            (
                select purchases.user_id from headroom.store_purchases as purchases
                where purchases.source = v_source and purchases.transaction = v_effect ->> 'transaction'
            ),
            case when v_effect ? 'to' or v_effect ? 'identities' then headroom.user_of_person(headroom.store_person(
                v_source,
                headroom.read_store_identities('to', coalesce(v_effect -> 'to', v_effect -> 'identities'))
            )) end
        );
        exit when v_user_id is not null;
    end loop;
    return coalesce(
        v_user_id, headroom.user_of_person(headroom.store_person(v_source, p_notification.identities))
    );
end
$$;
revoke all on function headroom.user_of_notification(headroom.store_notifications) from public;
grant execute on function headroom.user_of_notification(headroom.store_notifications) to headroom_service;
