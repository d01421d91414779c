-- Terms by number
--
-- Of what a counted message is told, all but the count is the same message after message: plan, limit, state and dates.
-- This column names them. A lane says which version of a user's terms it knows, and is sent them only when the row has
-- another.

create sequence headroom.terms_versions;

-- Null in rows that are there already, whose terms are sent each time until they change or the next period begins:
-- numbering them here would write the whole table anew.
alter table public.message_usage add column terms_version bigint;
alter table public.message_usage alter column terms_version set default nextval('headroom.terms_versions');

comment on column public.message_usage.terms_version is
    'New with the row and whenever something in it changes that an answer shows, other than the counts.';

create function headroom.terms_changed() returns trigger
    language plpgsql set search_path = pg_catalog
as $$
begin
    update public.message_usage as usage set terms_version = nextval('headroom.terms_versions')
    where usage.user_id = new.user_id and usage.billing_period = new.billing_period;
    return null;
end
$$;
-- After the row for the reason of count_was_reset. Counting names none of these columns, so it does not come here at all;
-- whoever changes one of them does, also with a plain UPDATE.
create trigger terms_changed
    after update of
        "limit", plan, state, started_at, resets_at, expires_at, previous_plan, plan_revision
    on public.message_usage
    for each row when (
        new.terms_version is not distinct from old.terms_version
        and (
            new."limit", new.plan, new.state, new.started_at, new.resets_at, new.expires_at, new.previous_plan,
            new.plan_revision
        ) is distinct from (
            old."limit", old.plan, old.state, old.started_at, old.resets_at, old.expires_at, old.previous_plan,
            old.plan_revision
        )
    )
    execute function headroom.terms_changed();
