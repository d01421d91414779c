-- All effects of a notification, in their order. Returns what became of them together.
create or replace function headroom.apply_store_effects(
    p_notification headroom.store_notifications, p_told text
) returns text
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_effect jsonb;
    v_place integer := 0;
    v_outcome text;
    v_outcomes text[] := '{}';
begin
    if headroom.is_too_early(p_notification) and p_notification.effects <> '[]' then
        raise exception '''at'' is in the future' using errcode = 'invalid_parameter_value',
            hint = 'It is when it happened; the database''s clock says ' || headroom.now()
                || '. headroom events replay applies it when that is there.';
    end if;
    for v_effect in select * from jsonb_array_elements(p_notification.effects) loop
        v_place := v_place + 1;
        case v_effect ->> 'kind'
            when 'granted' then
                v_outcome := headroom.apply_grant_effect(p_notification, v_effect, p_told);
            when 'merged', 'transferred' then
                if v_effect ->> 'kind' = 'merged' then
                    perform headroom.apply_alias_effect(p_notification, v_effect, v_place);
                end if;
                v_outcome := case
                    when v_effect ->> 'kind' = 'merged' and headroom.user_of_person(headroom.store_person(
                        p_notification.source,
                        headroom.read_store_identities('identities', v_effect -> 'identities')
                    )) is not null then 'applied'
                    when exists (
                        select from headroom.store_owners as owners
                        where owners.source = p_notification.source and owners.told_by = p_notification.id
                            and owners.step > 0
                    ) then 'applied'
                    else 'waiting'
                end;
            else
                v_outcome := headroom.apply_subscription_effect(p_notification, v_effect, v_place, p_told);
        end case;
        v_outcomes := v_outcomes || v_outcome;
    end loop;
    return case
        when 'applied' = any (v_outcomes) then 'applied'
        when 'waiting' = any (v_outcomes) then 'waiting'
        when 'outdated' = any (v_outcomes) then 'outdated'
        when 'duplicate' = any (v_outcomes) then 'applied'
        else 'ignored'
    end;
end
$$;
revoke all on function headroom.apply_store_effects(headroom.store_notifications, text) from public;
grant execute on function headroom.apply_store_effects(headroom.store_notifications, text) to headroom_service;
