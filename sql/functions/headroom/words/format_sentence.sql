-- Returns a sentence of headroom.words with its blanks filled in, in the language of the setting headroom.language.
-- p_number chooses among the forms of a word about neither remaining nor used messages: of hours, which has {n}. The
-- service does the same (Vocabulary).
create or replace function headroom.format_sentence(
    p_word text, p_number bigint, p_used bigint, p_limit bigint, p_remaining bigint, p_date timestamptz, p_label text,
    p_day integer, p_days integer, p_wait_seconds bigint default null
) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_languages constant text[] := headroom.language_lookup();
    v_unlimited text := '';
    v_number text;
    v_text text;
begin
    select blanks.number into v_number from headroom.word_blanks as blanks where blanks.word = p_word;
    v_text := headroom.template_of(p_word, v_languages, case v_number
        when 'remaining' then p_remaining when 'used' then p_used when 'n' then p_number when 'day' then p_number
    end);
    -- Nearly half of the sentences have no blank.
    if strpos(v_text, '{') = 0 then
        return v_text;
    end if;
    if strpos(v_text, '{date}') > 0 then
        v_text := replace(v_text, '{date}', headroom.format_date(p_date, v_languages));
    end if;
    if strpos(v_text, '{wait}') > 0 then
        v_text := replace(v_text, '{wait}', headroom.format_wait(p_wait_seconds, v_languages));
    end if;
    if (p_limit is null or p_remaining is null) and (v_text like '%{limit}%' or v_text like '%{remaining}%') then
        v_unlimited := headroom.template_of('unlimited', v_languages, null);
    end if;
    -- The label comes last, because an operator's text may have braces.
    return replace(replace(replace(replace(replace(replace(replace(v_text,
        '{used}', coalesce(p_used::text, '')),
        '{limit}', coalesce(p_limit::text, v_unlimited)),
        '{remaining}', coalesce(p_remaining::text, v_unlimited)),
        '{n}', coalesce(p_number::text, '')),
        '{days}', coalesce(p_days::text, '')),
        '{day}', coalesce(p_day::text, '')),
        '{label}', coalesce(p_label, ''));
end
$$;
