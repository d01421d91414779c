-- Trigger function: makes the words that instances have read outdated.
create or replace function headroom.increment_words_revision() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    update headroom.plan_revision set words_revision = words_revision + 1;
    return null;
end
$$;
