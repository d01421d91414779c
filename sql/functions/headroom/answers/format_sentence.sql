-- Returns a sentence of headroom.words with its placeholders filled in. p_number chooses between its forms; null if the
-- sentence has no number. p_wait_seconds: until the window ends.
create or replace function headroom.format_sentence(
    p_word text, p_number bigint, p_used bigint, p_limit bigint, p_remaining bigint, p_date timestamptz, p_label text,
    p_day integer, p_days integer, p_wait_seconds bigint default null
) returns text
    language sql stable
begin atomic
    select
        replace(replace(replace(replace(replace(replace(replace(replace(
            case when p_number = 1 then coalesce(words.one, words.other) else words.other end,
            '{used}', p_used::text),
            '{limit}', coalesce(p_limit::text, 'unlimited')),
            '{remaining}', coalesce(p_remaining::text, 'unlimited')),
            '{date}', coalesce(to_char(p_date at time zone 'UTC', 'FMMonth FMDD'), '')),
            '{label}', coalesce(p_label, '')),
            '{day}', coalesce(p_day::text, '')),
            '{days}', coalesce(p_days::text, '')),
            '{wait}', coalesce(headroom.wait_text(p_wait_seconds), ''))
    from headroom.words
    where words.word = p_word;
end;
