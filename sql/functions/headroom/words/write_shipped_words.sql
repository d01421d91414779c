-- Writes the words of a release. Rows of headroom.words that are as the last release shipped them become those of this
-- one; rows that an operator has edited or deleted stay so, except that en has every word. The words of all languages
-- are in p_langs and the arrays after it; p_known has each word once, p_blanks its blanks, separated by spaces, and
-- p_numbers the blank whose number chooses among the forms, or null. headroom migrate calls it, as the owner.
create or replace function headroom.write_shipped_words(
    p_langs text[], p_words text[], p_one text[], p_other text[], p_few text[], p_many text[], p_known text[],
    p_blanks text[], p_numbers text[]
) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    insert into headroom.word_blanks as known (word, blanks, number)
    select given.word, array_remove(string_to_array(given.blanks, ' '), ''), given.number
    from unnest(p_known, p_blanks, p_numbers) as given (word, blanks, number)
    on conflict (word) do update set blanks = excluded.blanks, number = excluded.number
    where (known.blanks, known.number) is distinct from (excluded.blanks, excluded.number);
    delete from headroom.word_blanks as known where known.word <> all(p_known);

    -- This is nearly always so. Each statement on headroom.words makes all instances read it again.
    if not exists (
        select from unnest(p_langs, p_words, p_one, p_other, p_few, p_many) as new (lang, word, one, other, few, many)
        full join headroom.shipped_words as old on old.lang = new.lang and old.word = new.word
        where (old.one, old.other, old.few, old.many) is distinct from (new.one, new.other, new.few, new.many)
            or old.word is null or new.word is null
    ) and not exists (
        select from unnest(p_known) as known (word)
        where not exists (select from headroom.words where words.lang = 'en' and words.word = known.word)
    ) then
        return;
    end if;
    delete from headroom.words
    where words.word <> all(p_known)
        or exists (
            select from headroom.shipped_words as old
            where old.lang = words.lang and old.word = words.word
                and (old.one, old.other, old.few, old.many)
                    is not distinct from (words.one, words.other, words.few, words.many)
        ) and not exists (
            select from unnest(p_langs, p_words) as new (lang, word)
            where new.lang = words.lang and new.word = words.word
        );
    update headroom.words
    set one = new.one, other = new.other, few = new.few, many = new.many
    from unnest(p_langs, p_words, p_one, p_other, p_few, p_many) as new (lang, word, one, other, few, many)
    join headroom.shipped_words as old on old.lang = new.lang and old.word = new.word
    where words.lang = new.lang and words.word = new.word
        and (old.one, old.other, old.few, old.many)
            is not distinct from (words.one, words.other, words.few, words.many)
        and (new.one, new.other, new.few, new.many) is distinct from (words.one, words.other, words.few, words.many);
    insert into headroom.words (lang, word, one, other, few, many)
    select new.lang, new.word, new.one, new.other, new.few, new.many
    from unnest(p_langs, p_words, p_one, p_other, p_few, p_many) as new (lang, word, one, other, few, many)
    where new.lang = 'en' or not exists (
        select from headroom.shipped_words as old where old.lang = new.lang and old.word = new.word
    )
    on conflict (lang, word) do nothing;

    delete from headroom.shipped_words;
    insert into headroom.shipped_words (lang, word, one, other, few, many)
    select new.lang, new.word, new.one, new.other, new.few, new.many
    from unnest(p_langs, p_words, p_one, p_other, p_few, p_many) as new (lang, word, one, other, few, many);
end
$$;
