-- Replaces the words of a language with the shipped ones, and returns the number of rows that changed. It has the
-- rights of the caller, so that the audit log names that role.
create or replace function headroom.restore_words(p_lang text) returns integer
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    v_lang constant text := headroom.canonical_language(p_lang);
    v_restored integer;
begin
    if not exists (select from headroom.shipped_words as shipped where shipped.lang = v_lang) then
        raise exception 'no words of % are shipped', coalesce(quote_literal(p_lang), 'null') using
            errcode = 'invalid_parameter_value',
            hint = 'Shipped are ' || (
                select string_agg(distinct shipped.lang, ', ' order by shipped.lang)
                from headroom.shipped_words as shipped
            ) || '. Delete rows of another language to fall back to those.';
    end if;
    insert into headroom.words as words (lang, word, one, other, few, many)
    select shipped.lang, shipped.word, shipped.one, shipped.other, shipped.few, shipped.many
    from headroom.shipped_words as shipped
    where shipped.lang = v_lang
    on conflict (lang, word) do update
    set one = excluded.one, other = excluded.other, few = excluded.few, many = excluded.many
    where (words.one, words.other, words.few, words.many)
        is distinct from (excluded.one, excluded.other, excluded.few, excluded.many);
    get diagnostics v_restored = row_count;
    return v_restored;
end
$$;
