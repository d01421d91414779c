-- The event with each field in its place, or an error that names the field. Looks at each by itself; what they mean
-- together is headroom.check_store_event's matter.
create or replace function headroom.read_store_event(p_event jsonb) returns headroom.store_events
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_event headroom.store_events;
    v_field text;
    v_value jsonb;
    v_text text;
    v_pattern text;
    v_length_maximum integer;
begin
    if p_event is null then
        raise exception 'p_event is null: pass the event as a JSON object' using errcode = 'null_value_not_allowed';
    elsif jsonb_typeof(p_event) <> 'object' then
        raise exception 'p_event must be a JSON object' using errcode = 'invalid_parameter_value';
    end if;
    for v_field, v_value in select * from jsonb_each(p_event) loop
        v_text := v_value #>> '{}';
        -- Lengths are looked at by themselves: a pattern that counts to 255 takes ten times as long.
        v_pattern := case
            when v_field in ('source', 'plan', 'next_plan') then '^[a-z][a-z0-9_]*$'
            when v_field = 'kind' then '^[A-Za-z][A-Za-z0-9_./-]*$'
            when v_field = 'user' then '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$'
            when v_field = 'anchor' then '^([1-9]|[12][0-9]|3[01])$'
            else '^[^[:cntrl:]]+$'
        end;
        v_length_maximum := case
            when v_field in ('source', 'plan', 'next_plan') then 32 when v_field = 'kind' then 64 else 255
        end;
        if not v_field = any (array[
            'id', 'source', 'at', 'user', 'transaction', 'kind', 'plan', 'product', 'next_plan', 'next_product',
            'started', 'expires', 'grace_until', 'anchor', 'environment'
        ]) then
            raise exception 'a store event has no field %', quote_literal(left(v_field, 64))
                using errcode = 'invalid_parameter_value',
                    hint = 'Its fields are id, source, at, user, transaction, kind, plan, product, next_plan, '
                        'next_product, started, expires, grace_until, anchor and environment.';
        elsif v_text is null then
            continue;
        elsif v_field = 'anchor' and (jsonb_typeof(v_value) <> 'number' or v_text !~ v_pattern) then
            raise exception '''anchor'' must be a number, the day of the month from 1 to 31'
                using errcode = 'invalid_parameter_value';
        elsif v_field <> 'anchor' and jsonb_typeof(v_value) <> 'string' then
            raise exception '% must be a text', quote_literal(v_field) using errcode = 'invalid_parameter_value';
        elsif length(v_text) > v_length_maximum or v_text !~ v_pattern then
            raise exception '% does not have the form of one', quote_literal(v_field)
                using errcode = 'invalid_parameter_value', hint = case v_field
                    when 'user' then 'A user is a UUID, 8-4-4-4-12 hexadecimal digits.'
                    when 'source' then 'Lower-case letters, digits and underscores, at most 32.'
                    when 'kind' then 'Letters, digits and _./- are allowed, at most 64.'
                    when 'plan' then 'select plan from headroom.plans lists the plans.'
                    when 'next_plan' then 'select plan from headroom.plans lists the plans.'
                    else 'It has 1 to 255 characters, none of them a control character.'
                end;
        end if;
        case v_field
            when 'id' then v_event.event_id := v_text;
            when 'source' then v_event.source := v_text;
            when 'at' then v_event.event_at := headroom.store_event_instant(v_field, v_text);
            when 'user' then v_event.user_id := v_text::uuid;
            when 'transaction' then v_event.original_transaction_id := v_text;
            when 'kind' then v_event.kind := v_text;
            when 'plan' then v_event.plan := v_text;
            when 'product' then v_event.product := v_text;
            when 'next_plan' then v_event.next_plan := v_text;
            when 'next_product' then v_event.next_product := v_text;
            when 'started' then v_event.started_at := headroom.store_event_instant(v_field, v_text);
            when 'expires' then v_event.expires_at := headroom.store_event_instant(v_field, v_text);
            when 'grace_until' then v_event.grace_until := headroom.store_event_instant(v_field, v_text);
            when 'anchor' then v_event.anchor_day := v_text::smallint;
            when 'environment' then v_event.environment := v_text;
        end case;
    end loop;
    v_event.received_at := headroom.now();
    return v_event;
end
$$;
revoke all on function headroom.read_store_event(jsonb) from public;
grant execute on function headroom.read_store_event(jsonb) to headroom_service;
