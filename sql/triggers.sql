-- Creates the triggers. It is applied after the functions that they call, and only if this file has changed: creating a
-- trigger blocks writes to its table until the transaction ends. A migration drops triggers that are no longer needed.
-- Execute it in one transaction (psql -1).

-- This lock prevents a deadlock: a batch that locks both tables locks rows of this one first, so it either ends before
-- this or waits here. The fast path never locks this table.
lock table headroom.subscribers in exclusive mode;

-- No function of Headroom writes plans, so every change is recorded. Mappings of products are recorded, too, even those
-- by map_product: they change what buyers may send.
create or replace trigger record_manual_change after insert or update or delete on headroom.plans
    for each row execute function headroom.record_manual_change();
create or replace trigger check_time_zone before insert or update of time_zone on headroom.plans
    for each row when (new.time_zone is not null) execute function headroom.check_time_zone();
create or replace trigger check_plan_name before insert or update of plan on headroom.plans
    for each row when (new.plan = 'window') execute function headroom.check_plan_name();
create or replace trigger increment_plan_revision after insert or update or delete on headroom.plans
    for each statement execute function headroom.increment_revision();
-- This trigger is separate, because Citus does not fire one for TRUNCATE on each machine.
create or replace trigger increment_truncated_plan_revision after truncate on headroom.plans
    for each statement execute function headroom.increment_revision();
-- A plan that is deleted or renamed takes its limits along, and that is recorded, too.
create or replace trigger record_manual_change after insert or update or delete on headroom.plan_limits
    for each row execute function headroom.record_manual_change();
create or replace trigger increment_plan_revision after insert or update or delete on headroom.plan_limits
    for each statement execute function headroom.increment_revision();
create or replace trigger increment_truncated_plan_revision after truncate on headroom.plan_limits
    for each statement execute function headroom.increment_revision();
create or replace trigger lock_subscribers before update of plan on headroom.plans
    for each statement execute function headroom.lock_subscribers();
-- Triggers are executed in the order of their names. This one comes before those of foreign keys, "RI_…", so that
-- foreign keys find nothing left to change. Their changes would be recorded for each user.
create or replace trigger "0_rename_plan" after update of plan on headroom.plans
    for each row when (old.plan <> new.plan) execute function headroom.rename_plan();
create or replace trigger record_manual_change after insert or update or delete on headroom.store_products
    for each row execute function headroom.record_manual_change();
create or replace trigger record_manual_change after insert or update or delete on headroom.store_entitlements
    for each row execute function headroom.record_manual_change();

-- Headroom's own writes, by headroom migrate, are those of headroom_owner, and are not recorded.
create or replace trigger check_word before insert or update on headroom.words
    for each row execute function headroom.check_word();
create or replace trigger keep_english before delete on headroom.words
    for each row when (old.lang = 'en') execute function headroom.keep_english();
create or replace trigger refuse_truncation before truncate on headroom.words
    for each statement execute function headroom.keep_english();
create or replace trigger increment_words_revision after insert or update or delete on headroom.words
    for each statement execute function headroom.increment_revision();
create or replace trigger record_manual_change after insert or update or delete on headroom.words
    for each row when (current_user <> 'headroom_owner') execute function headroom.record_manual_change();

-- last_used_at is in neither list: it is written once a minute and does not change which tokens are valid.
create or replace trigger check_and_stamp_token
    before insert or update of name, scopes, digest, created_at, created_by, expires_at, revoked_at, revoked_by
    on headroom.tokens for each row execute function headroom.check_and_stamp_token();
create or replace trigger notify_tokens_changed
    after insert or delete or update of name, scopes, digest, expires_at, revoked_at
    on headroom.tokens for each statement execute function headroom.notify_tokens_changed();

-- Functions of headroom_owner record their own changes. A counted message costs only the first comparison. A change by
-- another owner's trigger is made in that role, and recorded. The names of roles are texts, because a constant of the
-- type name has 64 bytes, which PostgreSQL parses in each statement.
create or replace trigger record_manual_change after insert or update or delete on headroom.subscribers
    for each row when (current_user <> 'headroom_service'::text and current_user <> 'headroom_owner'::text)
    execute function headroom.record_manual_change();
create or replace trigger delete_subscriptions before delete on headroom.subscribers
    for each row when (current_user <> 'headroom_service'::text and current_user <> 'headroom_owner'::text)
    execute function headroom.delete_subscriptions();
create or replace trigger restore_spent_trial after insert on headroom.subscribers
    referencing new table as inserted for each statement execute function headroom.restore_spent_trial();
create or replace trigger record_manual_change after insert or update or delete on headroom.subscriptions
    for each row when (current_user <> 'headroom_service'::text and current_user <> 'headroom_owner'::text)
    execute function headroom.record_manual_change();

create or replace trigger record_manual_change after insert or update or delete on public.message_usage
    for each row when (current_user <> 'headroom_service'::text and current_user <> 'headroom_owner'::text)
    execute function headroom.record_manual_change();
create or replace trigger end_holds after delete on public.message_usage
    for each row when (old.held > 0) execute function headroom.end_holds();
create or replace trigger delete_parts after delete on public.message_usage
    for each row execute function headroom.delete_parts();
-- The fast path updates none of the columns of the next two triggers, so it parses neither condition. That is why the
-- ranges are no check constraints, which PostgreSQL parses from text in each UPDATE: a quarter of the time of a small
-- batch. What the fast path and psql write into the other columns is checked by their WHERE clauses and by
-- record_manual_change. All are AFTER triggers, because a BEFORE trigger would lock each row first, with a WAL record
-- per message.
create or replace trigger values_are_in_range
    after insert or update of
        generation, released, plan, plan_limit, "limit", started_at, resets_at, expires_at, granted, plan_revision,
        entitlement_version, window_limit, extra, extra_expires, usable_count
    on public.message_usage
    for each row when (
        least(
            new.message_count, new.held, new.released, new.granted, new."limit", new.plan_limit, new.plan_revision,
            new.window_count, new.window_held, new.window_limit, new.extra, new.usable_count
        ) < 0
        or least(new.generation, new.entitlement_version) < 0
        or least(new.updated_at, new.started_at, new.resets_at, new.expires_at, new.extra_expires)
            < '2000-01-01T00:00:00Z'
        or greatest(new.updated_at, new.started_at, new.resets_at, new.expires_at, new.extra_expires)
            >= '10000-01-01T00:00:00Z'
    )
    execute function headroom.refuse_values();
-- Only functions write keys, and a parsed condition would cost each batch.
create or replace trigger values_are_in_range after insert or update on headroom.message_keys
    for each row when (current_user <> 'headroom_service'::text) execute function headroom.refuse_values();
create or replace trigger values_are_in_range after insert or update on headroom.usage_parts
    for each row when (current_user <> 'headroom_service'::text) execute function headroom.refuse_values();
create or replace trigger record_manual_change after insert or update or delete on headroom.usage_parts
    for each row when (current_user <> 'headroom_service'::text and current_user <> 'headroom_owner'::text)
    execute function headroom.record_manual_change();
-- The condition does not compare whole rows, because a dump would write that in another form.
create or replace trigger advance_entitlement_version
    after update of
        "limit", plan, state, started_at, resets_at, expires_at, previous_plan, renews, plan_revision,
        window_opened_at, window_ends_at, window_limit, extra, extra_expires
    on public.message_usage
    for each row when (
        new.entitlement_version is not distinct from old.entitlement_version
        and (
            new."limit" is distinct from old."limit" or new.plan is distinct from old.plan
            or new.state is distinct from old.state or new.started_at is distinct from old.started_at
            or new.resets_at is distinct from old.resets_at or new.expires_at is distinct from old.expires_at
            or new.previous_plan is distinct from old.previous_plan or new.renews is distinct from old.renews
            or new.plan_revision is distinct from old.plan_revision
            or new.window_opened_at is distinct from old.window_opened_at
            or new.window_ends_at is distinct from old.window_ends_at
            or new.window_limit is distinct from old.window_limit
            or new.extra is distinct from old.extra or new.extra_expires is distinct from old.extra_expires
        )
    )
    execute function headroom.advance_entitlement_version();

-- A row in another bucket than its user's would not be found. These are not check constraints, because PostgreSQL
-- prepares those for each UPDATE, also for one that leaves the bucket alone. They are AFTER triggers, because a
-- statement may have waited for headroom.divide_users until its row was written; the new buckets are known then.
create or replace trigger bucket_is_of_the_user after insert or update of bucket, user_id on headroom.subscribers
    for each row when (new.bucket <> headroom.bucket_of(new.user_id)) execute function headroom.refuse_bucket();
create or replace trigger bucket_is_of_the_user after insert or update of bucket, user_id on headroom.subscriptions
    for each row when (new.bucket <> headroom.bucket_of(new.user_id)) execute function headroom.refuse_bucket();
create or replace trigger bucket_is_of_the_user after insert or update of bucket, user_id on headroom.usage_parts
    for each row when (new.bucket <> headroom.bucket_of(new.user_id)) execute function headroom.refuse_bucket();
-- These have no condition, because its call of bucket_of would need a right that applications do not have. So new rows
-- are looked at together: a call for each took a third of the time of an INSERT.
create or replace trigger bucket_is_of_the_user after insert on public.message_usage
    referencing new table as inserted for each statement execute function headroom.refuse_bucket();
create or replace trigger bucket_stays_of_the_user after update of bucket, user_id on public.message_usage
    for each row execute function headroom.refuse_bucket();
create or replace trigger bucket_is_of_the_user after insert or update of bucket, user_id on headroom.grants
    for each row when (new.bucket <> headroom.bucket_of(new.user_id)) execute function headroom.refuse_bucket();
create or replace trigger bucket_is_of_the_user after insert or update of bucket, user_id on headroom.audit_log
    for each row when (new.bucket <> headroom.bucket_of(new.user_id)) execute function headroom.refuse_bucket();
