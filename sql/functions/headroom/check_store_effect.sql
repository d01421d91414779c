-- Refuses an effect that is not one, so that nothing is kept which could never be applied.
create or replace function headroom.check_store_effect(p_effect jsonb) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_kind constant text := p_effect ->> 'kind';
    v_field text;
    v_value jsonb;
    v_missing text;
begin
    if jsonb_typeof(p_effect) <> 'object' then
        raise exception '''effects'' must be an array of objects' using errcode = 'invalid_parameter_value';
    elsif v_kind is null or not (
        headroom.is_store_event_kind(v_kind) or v_kind in ('granted', 'temporary', 'transferred', 'merged')
    ) then
        raise exception 'an effect''s ''kind'' is missing or not known' using errcode = 'invalid_parameter_value',
            hint = 'Kinds are those of apply_store_event, and granted, temporary, transferred and merged.';
    end if;
    for v_field, v_value in select * from jsonb_each(p_effect) loop
        if not v_field = any (case v_kind
            when 'granted' then array['kind', 'transaction', 'product', 'quantity']
            when 'temporary' then array['kind', 'transaction', 'product', 'expires']
            when 'transferred' then array['kind', 'from', 'to']
            when 'merged' then array['kind', 'identities']
            else array[
                'kind', 'transaction', 'product', 'period', 'next_product', 'started', 'expires', 'grace_until'
            ]
        end) then
            raise exception 'an effect of kind % has no field %', quote_literal(v_kind), quote_literal(left(v_field, 64))
                using errcode = 'invalid_parameter_value';
        elsif jsonb_typeof(v_value) = 'null' then
            continue;
        elsif v_field in ('from', 'to', 'identities') then
            perform headroom.read_store_identities(v_field, v_value);
        elsif v_field = 'quantity' then
            if jsonb_typeof(v_value) <> 'number' or v_value::text !~ '^[1-9][0-9]{0,5}$' then
                raise exception '''quantity'' must be a number from 1 to 999999'
                    using errcode = 'invalid_parameter_value';
            end if;
        elsif jsonb_typeof(v_value) <> 'string' then
            raise exception '% must be a text', quote_literal(v_field) using errcode = 'invalid_parameter_value';
        elsif v_field in ('started', 'expires', 'grace_until') then
            perform headroom.store_event_instant(v_field, v_value #>> '{}');
        elsif v_field = 'period' and v_value #>> '{}' not in ('normal', 'trial', 'intro') then
            raise exception '''period'' must be normal, trial or intro' using errcode = 'invalid_parameter_value';
        elsif v_value #>> '{}' !~ '^[^[:cntrl:]]+$' or length(v_value #>> '{}') > 255 then
            raise exception '% must have 1 to 255 characters, none of them a control character', quote_literal(v_field)
                using errcode = 'invalid_parameter_value';
        end if;
    end loop;
    v_missing := case
        when v_kind = 'transferred' and p_effect -> 'from' is null then 'from'
        when v_kind = 'transferred' and p_effect -> 'to' is null then 'to'
        when v_kind = 'merged' and p_effect -> 'identities' is null then 'identities'
        when v_kind in ('transferred', 'merged') then null
        when p_effect ->> 'transaction' is null then 'transaction'
        when v_kind in ('granted', 'temporary') and p_effect ->> 'product' is null then 'product'
    end;
    if v_missing is not null then
        raise exception '% is missing in an effect of kind %', quote_literal(v_missing), quote_literal(v_kind)
            using errcode = 'null_value_not_allowed';
    end if;
end
$$;
revoke all on function headroom.check_store_effect(jsonb) from public;
grant execute on function headroom.check_store_effect(jsonb) to headroom_service;
