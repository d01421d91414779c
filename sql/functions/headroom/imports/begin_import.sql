-- Registers the import of a file, unless it is registered, and returns how many of its rows are committed, and when it
-- was finished; null if it is not. p_digest is the SHA-256 of the file, p_records the number of its rows, and p_file
-- its name for the audit log. p_adds: as in headroom.import_batch.
create or replace function headroom.begin_import(p_digest bytea, p_adds boolean, p_file text, p_records bigint)
    returns table (done bigint, finished_at timestamptz)
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    insert into headroom.imports as one (digest, adds, file, records, started_at, actor)
    values (p_digest, p_adds, p_file, p_records, headroom.now(), headroom.actor())
    on conflict (digest, adds) do nothing;
    return query
    select one.done, one.finished_at::timestamptz from headroom.imports as one
    where one.digest = p_digest and one.adds = p_adds;
end
$$;
