-- Trigger function: refuses a row of headroom.words that would spoil answers, and says what is right. It spells the
-- row's language as RFC 5646 does.
create or replace function headroom.check_word() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_blanks text[];
    v_column text;
    v_template text;
    v_blank text;
    -- This text says what is right, for the error.
    v_known text;
    v_lang constant text := headroom.canonical_language(new.lang);
begin
    if v_lang is null then
        raise exception '% is not a language tag', coalesce(quote_literal(new.lang), 'null') using
            errcode = 'invalid_parameter_value',
            hint = 'A tag of BCP 47 has at most 35 characters: de, pt-BR, zh-Hant.';
    end if;
    new.lang := v_lang;
    if tg_op = 'UPDATE' and old.lang = 'en' and (new.lang, new.word) is distinct from (old.lang, old.word) then
        raise exception 'the word % of en cannot be renamed', old.word using
            errcode = 'object_not_in_prerequisite_state',
            hint = 'Insert a row for another language instead. All of them fall back to en, which has every word.';
    end if;
    select known.blanks into v_blanks from headroom.word_blanks as known where known.word = new.word;
    if v_blanks is null then
        raise exception 'there is no word %', coalesce(quote_literal(new.word), 'null') using
            errcode = 'invalid_parameter_value', hint = 'select word, blanks from headroom.word_blanks lists them.';
    end if;
    v_known := case
        when v_blanks = '{}' then 'it has no blanks'
        else 'it has {' || array_to_string(v_blanks, '}, {') || '}'
    end;
    if new.other is null or new.other = '' then
        raise exception 'the form other of % is missing', new.word using
            errcode = 'invalid_parameter_value', hint = 'Every word has this form. Delete the row to fall back to en.';
    end if;
    foreach v_column in array array['one', 'other', 'few', 'many'] loop
        v_template := to_jsonb(new) ->> v_column;
        continue when v_template is null;
        if v_template = '' then
            raise exception 'the form % of % is empty', v_column, new.word using
                errcode = 'invalid_parameter_value', hint = 'Null is a form that is the same as other.';
        end if;
        if length(v_template) > 500 then
            raise exception 'the form % of % has % characters', v_column, new.word, length(v_template) using
                errcode = 'invalid_parameter_value', hint = 'A form has at most 500.';
        end if;
        -- The separators of lines and paragraphs are refused, too, because an answer is one line.
        if v_template ~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029]' then
            raise exception 'the form % of % has a line break or another control character', v_column, new.word using
                errcode = 'invalid_parameter_value', hint = 'An answer is one line.';
        end if;
        for v_blank in select (regexp_matches(v_template, '\{([^{}]*)\}', 'g'))[1] loop
            if v_blank <> all(v_blanks) then
                raise exception 'the blank {%} is unknown in %; %', v_blank, new.word, v_known using
                    errcode = 'invalid_parameter_value';
            end if;
        end loop;
        if regexp_replace(v_template, '\{[^{}]*\}', '', 'g') ~ '[{}]' then
            raise exception 'the form % of % has a brace without its pair; %', v_column, new.word, v_known using
                errcode = 'invalid_parameter_value';
        end if;
    end loop;
    return new;
end
$$;
