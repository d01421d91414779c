-- Trigger function: refuses to delete words of en, to which other languages fall back. A word that the release does not
-- have any more may be deleted.
create or replace function headroom.keep_english() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'DELETE' and not exists (
        select from headroom.word_blanks as known where known.word = old.word
    ) then
        return old;
    end if;
    raise exception 'the words of en cannot be deleted' using
        errcode = 'object_not_in_prerequisite_state',
        hint = case tg_op
            when 'DELETE' then 'Other languages fall back to them. Edit the row, or restore the words as they were '
                || 'shipped: select headroom.restore_words(''en'').'
            else 'Delete the rows of other languages instead: delete from headroom.words where lang <> ''en''.'
        end;
end
$$;
