-- Blanks a user's own notifications; in those of others that only name the user, an invented name stands instead, so that
-- they can still be applied. In transfers and aliases it is p_stub, as in the facts. Returns how many.
create or replace function headroom.forget_store_notifications(p_user_id uuid, p_names text[], p_stub text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_pattern constant text := array_to_string(p_names, '|');
    v_rows bigint;
    v_count bigint;
begin
    update headroom.store_notifications as notifications
    set user_id = null, identities = '{}', effects = null, payload = null, mentions = '{}', effect = null,
        outcome = 'forgotten', lacks = null, problem = null
    where notifications.user_id = p_user_id
        or notifications.mentions && p_names and notifications.user_id is null and not exists (
            select from unnest(notifications.mentions) as names (name)
            where names.name not like '%:%' and names.name <> p_user_id::text
        );
    get diagnostics v_rows = row_count;
    -- Elsewhere it is another one, for beside a UUID it becomes that user's: what p_stub had would, too.
    update headroom.store_notifications as notifications
    set identities = regexp_replace(notifications.identities::text, v_pattern, renamed.name, 'gi')::text[],
        effects = regexp_replace(notifications.effects::text, v_pattern, renamed.name, 'gi')::jsonb,
        payload = regexp_replace(notifications.payload::text, v_pattern, renamed.name, 'gi')::jsonb,
        mentions = regexp_replace(notifications.mentions::text, v_pattern, renamed.name, 'gi')::text[],
        problem = regexp_replace(notifications.problem, v_pattern, renamed.name, 'gi')
    from (
        select others.source, others.id, case
            when others.effects @? '$[*] ? (@.kind == "transferred" || @.kind == "merged")' then p_stub else headroom.digest_of_nobody()
        end as name
        from headroom.store_notifications as others where others.mentions && p_names
    ) as renamed
    where renamed.source = notifications.source and renamed.id = notifications.id;
    get diagnostics v_count = row_count;
    return v_rows + v_count;
end
$$;
revoke all on function headroom.forget_store_notifications(uuid, text[], text) from public;
grant execute on function headroom.forget_store_notifications(uuid, text[], text) to headroom_service;
