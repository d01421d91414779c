-- The notification with each field in its place, or an error that names the field.
create or replace function headroom.read_store_notification(p_notification jsonb) returns headroom.store_notifications
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_read headroom.store_notifications;
    v_field text;
    v_value jsonb;
    v_text text;
    v_effect jsonb;
begin
    if p_notification is null then
        raise exception 'p_notification is null: pass the notification as a JSON object'
            using errcode = 'null_value_not_allowed';
    elsif jsonb_typeof(p_notification) <> 'object' then
        raise exception 'p_notification must be a JSON object' using errcode = 'invalid_parameter_value';
    end if;
    for v_field, v_value in select * from jsonb_each(p_notification) loop
        v_text := v_value #>> '{}';
        if not v_field = any (array[
            'source', 'id', 'type', 'at', 'environment', 'identities', 'effects', 'payload', 'problem'
        ]) then
            raise exception 'a store notification has no field %', quote_literal(left(v_field, 64))
                using errcode = 'invalid_parameter_value',
                    hint = 'Its fields are source, id, type, at, environment, identities, effects, payload and problem.';
        elsif v_text is null or v_field = 'identities' then
            continue;
        elsif v_field = 'effects' then
            if jsonb_typeof(v_value) <> 'array' or jsonb_array_length(v_value) > 64 then
                raise exception '''effects'' must be an array of at most 64' using errcode = 'invalid_parameter_value';
            end if;
            for v_effect in select * from jsonb_array_elements(v_value) loop
                perform headroom.check_store_effect(v_effect);
            end loop;
        elsif v_field = 'payload' then
            if jsonb_typeof(v_value) <> 'object' or octet_length(v_text) > 65536 then
                raise exception '''payload'' must be an object of at most 65536 bytes'
                    using errcode = 'invalid_parameter_value';
            end if;
        elsif jsonb_typeof(v_value) <> 'string' then
            raise exception '% must be a text', quote_literal(v_field) using errcode = 'invalid_parameter_value';
        elsif v_field = 'source' and v_text !~ '^[a-z][a-z0-9_]{0,31}$' then
            raise exception '''source'' must be lower-case letters, digits and underscores, at most 32'
                using errcode = 'invalid_parameter_value';
        elsif length(v_text) > (case v_field when 'environment' then 32 when 'problem' then 1000 else 255 end)
            or v_text !~ '^[^[:cntrl:]]+$'
        then
            raise exception '% must be one line of 1 to 255 characters', quote_literal(v_field)
                using errcode = 'invalid_parameter_value';
        end if;
    end loop;
    v_field := case
        when p_notification ->> 'source' is null then 'source'
        when p_notification ->> 'id' is null then 'id'
        when p_notification ->> 'type' is null then 'type'
        when p_notification ->> 'at' is null then 'at'
    end;
    if v_field is not null then
        raise exception '% is missing', quote_literal(v_field) using errcode = 'null_value_not_allowed';
    end if;
    v_read.source := p_notification ->> 'source';
    v_read.id := p_notification ->> 'id';
    v_read.type := p_notification ->> 'type';
    v_read.happened_at := headroom.store_event_instant('at', p_notification ->> 'at');
    v_read.received_at := headroom.now();
    v_read.environment := p_notification ->> 'environment';
    v_read.identities := headroom.read_store_identities('identities', p_notification -> 'identities');
    v_read.effects := coalesce(nullif(p_notification -> 'effects', 'null'), '[]');
    v_read.payload := nullif(p_notification -> 'payload', 'null');
    v_read.problem := p_notification ->> 'problem';
    select coalesce(array_agg(distinct mention), '{}') into v_read.mentions
    from (
        select unnest(v_read.identities)
        union all
        select jsonb_array_elements_text(lists.value)
        from jsonb_array_elements(v_read.effects) as effects (value)
        cross join lateral jsonb_each(effects.value) as lists
        where lists.key in ('from', 'to', 'identities') and jsonb_typeof(lists.value) = 'array'
        union all
        select names.prefix || (effects.value ->> names.field)
        from jsonb_array_elements(v_read.effects) as effects (value)
        cross join (
            values ('transaction:', 'transaction'), ('product:', 'product'), ('product:', 'next_product')
        ) as names (prefix, field)
        where effects.value ->> names.field is not null
    ) as mentioned (mention);
    return v_read;
end
$$;
revoke all on function headroom.read_store_notification(jsonb) from public;
grant execute on function headroom.read_store_notification(jsonb) to headroom_service;
