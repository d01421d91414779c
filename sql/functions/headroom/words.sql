-- One of the sentences of headroom.words with its blanks filled in.
create or replace function headroom.words(
    p_name text, p_used bigint, p_limit bigint, p_remaining bigint, p_date timestamptz, p_label text, p_day integer,
    p_days integer
) returns text
    language sql stable
begin atomic
    select
        replace(replace(replace(replace(replace(replace(replace(
            template,
            '{used}', p_used::text),
            '{limit}', coalesce(p_limit::text, 'unlimited')),
            '{remaining}', coalesce(p_remaining::text, 'unlimited')),
            '{date}', coalesce(to_char(p_date at time zone 'UTC', 'FMMonth FMDD'), '')),
            '{label}', coalesce(p_label, '')),
            '{day}', coalesce(p_day::text, '')),
            '{days}', coalesce(p_days::text, ''))
    from headroom.words
    where name = p_name;
end;
