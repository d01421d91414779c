-- Returns the template of a word for a number, in the first of p_languages that has the word; null is no number.
create or replace function headroom.template_of(p_word text, p_languages text[], p_number bigint) returns text
    language sql stable
begin atomic
    select coalesce(
        case headroom.plural_category(words.lang, p_number)
            when 'one' then words.one when 'few' then words.few when 'many' then words.many
        end, words.other
    )
    from headroom.words
    where words.word = p_word and words.lang = any(p_languages)
    order by array_position(p_languages, words.lang)
    limit 1;
end;
