-- Returns the languages in which a word is looked up, in this order: that of the setting headroom.language, which an
-- operator sets for a database (alter database … set headroom.language = 'de') or an application for its session,
-- without its last subtags (RFC 4647, 3.4), and en. A setting that is no language tag is ignored.
create or replace function headroom.language_lookup() returns text[]
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_setting constant text := current_setting('headroom.language', true);
    v_tag text;
    v_tags text[] := '{}';
begin
    -- Nearly always one of these, and each sentence calls this.
    if coalesce(v_setting, '') in ('', 'en') then
        return '{en}';
    elsif v_setting ~ '^[a-z]{2}$' then
        return array[v_setting, 'en'];
    end if;
    v_tag := headroom.canonical_language(v_setting);
    while v_tag is not null loop
        v_tags := v_tags || v_tag;
        -- An extension's letter means nothing alone.
        v_tag := case when strpos(v_tag, '-') > 0 then regexp_replace(v_tag, '(-[^-])?-[^-]+$', '') end;
    end loop;
    return v_tags || 'en'::text;
end
$$;
