-- Returns a language tag in the spelling of RFC 5646, 2.1.1: de, pt-BR, zh-Hant. It is null if p_tag does not have the
-- form of a tag, or has more than 35 characters. The service does the same (LanguageTag).
create or replace function headroom.canonical_language(p_tag text) returns text
    language sql immutable
    return case
        when length(p_tag) <= 35 and p_tag ~ '^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$'
            then (
                select string_agg(
                    case
                        when subtag.position = 1 or subtag.follows_singleton then lower(subtag.text)
                        when length(subtag.text) = 2 then upper(subtag.text)
                        when subtag.text ~ '^[A-Za-z]{4}$' then initcap(subtag.text)
                        else lower(subtag.text)
                    end, '-' order by subtag.position
                )
                from (
                    select
                        part.text, part.position,
                        -- A subtag after an extension's letter is no region and no script.
                        coalesce(bool_or(length(part.text) = 1) over (
                            order by part.position rows between unbounded preceding and 1 preceding
                        ), false) as follows_singleton
                    from regexp_split_to_table(p_tag, '-') with ordinality as part (text, position)
                ) as subtag
            )
    end;
