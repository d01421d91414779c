-- Applies a kept notification; what goes wrong is undone and noted with it. The caller holds the rows of everybody whom
-- it concerns.
create or replace function headroom.work_store_notification(p_notification headroom.store_notifications) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_notification headroom.store_notifications := p_notification;
    v_told constant text := p_notification.type || ' told by ' || p_notification.source;
    v_state text;
    v_hint text;
begin
    v_notification.user_id := headroom.user_of_notification(p_notification);
    -- Kept with the user only where the user is known, because who is not can not be forgotten either.
    if not exists (
        select from headroom.subscribers as subscriber where subscriber.user_id = v_notification.user_id
    ) then
        v_notification.user_id := null;
    end if;
    v_notification.attempts := v_notification.attempts + 1;
    v_notification.lacks := null;
    v_notification.problem := null;
    begin
        v_notification.outcome := headroom.apply_store_effects(p_notification, v_told);
        if v_notification.outcome = 'ignored' and p_notification.problem is not null
            and jsonb_array_length(p_notification.effects) = 0
        then
            v_notification.outcome := 'failed';
            v_notification.problem := p_notification.problem;
        end if;
    exception when others then
        get stacked diagnostics v_state = returned_sqlstate, v_notification.problem = message_text,
            v_hint = pg_exception_hint;
        -- Deadlocks, cancellation, a full disk and the like are no matter of the notification: it is to be sent again.
        if left(v_state, 2) in ('40', '53', '54', '55', '57', '58', 'XX') then
            raise;
        end if;
        v_notification.outcome := 'failed';
        v_notification.lacks := case v_state when 'HR003' then 'user' when 'HR004' then 'product' end;
        v_notification.problem := left(
            v_notification.problem || case when v_hint <> '' then '. ' || v_hint else '' end, 1000
        );
    end;
    if v_notification.outcome <> 'failed' then
        v_notification.applied_at := headroom.now();
        v_notification.effect := headroom.store_event_answer(v_notification.outcome, v_notification.user_id)
            - '{outcome,user}'::text[];
    end if;
    update headroom.store_notifications as notifications
    set user_id = v_notification.user_id, outcome = v_notification.outcome, lacks = v_notification.lacks,
        problem = v_notification.problem, effect = v_notification.effect, attempts = v_notification.attempts,
        applied_at = v_notification.applied_at
    where notifications.source = p_notification.source and notifications.id = p_notification.id;
    -- For the story of the user: what changed nothing is told as well, and a failure once.
    if v_notification.user_id is not null
        and not exists (
            select from headroom.audit_log as audit
            where audit.user_id = v_notification.user_id and audit.event_id = p_notification.id
                and audit.at = headroom.now() and audit.reason = v_told
        )
        and (p_notification.attempts = 0 or v_notification.outcome <> 'failed')
    then
        perform headroom.record_change(
            v_notification.user_id, null, 'store_event', null,
            jsonb_build_object(
                'happened', headroom.instant_text(p_notification.happened_at), 'outcome', v_notification.outcome
            ),
            v_told, p_notification.id
        );
    end if;
end
$$;
revoke all on function headroom.work_store_notification(headroom.store_notifications) from public;
grant execute on function headroom.work_store_notification(headroom.store_notifications) to headroom_service;
