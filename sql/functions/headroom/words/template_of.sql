-- Returns the template of a word for a number, in the first of p_languages that has the word; null is no number. In
-- PL/pgSQL, which keeps its plans: each sentence calls this.
create or replace function headroom.template_of(p_word text, p_languages text[], p_number bigint) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_lang text;
    v_one text;
    v_few text;
    v_many text;
    v_other text;
begin
    foreach v_lang in array p_languages loop
        select words.one, words.few, words.many, words.other into v_one, v_few, v_many, v_other
        from headroom.words
        where words.lang = v_lang and words.word = p_word;
        exit when found;
    end loop;
    if p_number is null or coalesce(v_one, v_few, v_many) is null then
        return v_other;
    end if;
    return coalesce(
        case headroom.plural_category(v_lang, p_number)
            when 'one' then v_one when 'few' then v_few when 'many' then v_many
        end,
        v_other
    );
end
$$;
