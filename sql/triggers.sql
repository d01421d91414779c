-- Triggers. Applied after the functions that they call, and only when this file has changed: creating a trigger blocks
-- writes to its table until the transaction ends. A trigger that is no longer needed is dropped by a migration. In psql, run it
-- in one transaction (psql -1).

-- Against a deadlock: every batch that locks both tables locks rows of this one first, so it either ends before this or waits
-- here. The batches of the fast path never lock this table.
lock table headroom.subscribers in exclusive mode;

-- No function of Headroom's writes plans: every change is made by hand. So are the mappings of products, also by map_product:
-- they change what buyers may send.
create or replace trigger record_manual_change after insert or update or delete on headroom.plans
    for each row execute function headroom.record_manual_change();
create or replace trigger increment_plan_revision after insert or update or delete or truncate on headroom.plans
    for each statement execute function headroom.increment_plan_revision();
create or replace trigger rename_plan_in_events after update of plan on headroom.plans
    for each row when (old.plan <> new.plan) execute function headroom.rename_plan_in_events();
create or replace trigger record_manual_change after insert or update or delete on headroom.store_products
    for each row execute function headroom.record_manual_change();
create or replace trigger record_manual_change after insert or update or delete on headroom.store_entitlements
    for each row execute function headroom.record_manual_change();

-- last_used_at is in neither list: it is written once a minute, and no instance has to reread the tokens for it.
create or replace trigger stamp_token
    before insert or update of name, scopes, digest, created_at, created_by, expires_at, revoked_at, revoked_by
    on headroom.tokens for each row execute function headroom.stamp_token();
create or replace trigger notify_tokens_changed
    after insert or delete or update of name, scopes, digest, expires_at, revoked_at
    on headroom.tokens for each statement execute function headroom.notify_tokens_changed();

-- The service's functions record what they do themselves. Comparing the role is all that a counted message pays for this.
create or replace trigger record_manual_change after insert or update or delete on headroom.subscribers
    for each row when (current_user <> 'headroom_service') execute function headroom.record_manual_change();
create or replace trigger restore_spent_trial after insert on headroom.subscribers
    for each row execute function headroom.restore_spent_trial();
create or replace trigger record_manual_change after insert or update or delete on headroom.subscriptions
    for each row when (current_user <> 'headroom_service') execute function headroom.record_manual_change();

create or replace trigger record_manual_change after insert or update or delete on public.message_usage
    for each row when (current_user <> 'headroom_service') execute function headroom.record_manual_change();
create or replace trigger end_holds after delete on public.message_usage
    for each row when (old.held > 0) execute function headroom.end_holds();
-- After the row, because a trigger before it would lock the row first, with a log record of its own for each message.
create or replace trigger start_new_generation after update of message_count on public.message_usage
    for each row when (new.message_count < old.message_count and new.released = old.released)
    execute function headroom.start_new_generation();
-- The batched UPDATE that counts names none of these columns, so this trigger costs it nothing.
create or replace trigger advance_entitlement_version
    after update of
        "limit", plan, state, started_at, resets_at, expires_at, previous_plan, plan_revision
    on public.message_usage
    for each row when (
        new.entitlement_version is not distinct from old.entitlement_version
        and (
            new."limit", new.plan, new.state, new.started_at, new.resets_at, new.expires_at, new.previous_plan,
            new.plan_revision
        ) is distinct from (
            old."limit", old.plan, old.state, old.started_at, old.resets_at, old.expires_at, old.previous_plan,
            old.plan_revision
        )
    )
    execute function headroom.advance_entitlement_version();
