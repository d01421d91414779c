-- Returns the plural category of a whole number in a language: one, few, many or other. A language with two forms has
-- one for exactly 1; those with more have the categories of CLDR, of which zero and two are other here. The service has
-- the same rules (PluralRule), and a test compares both.
create or replace function headroom.plural_category(p_lang text, p_number bigint) returns text
    language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    v_language constant text := split_part(p_lang, '-', 1);
    v_tens constant bigint := p_number % 10;
    v_hundreds constant bigint := p_number % 100;
begin
    if p_number is null or p_number < 0 then
        return 'other';
    end if;
    case
        when v_language = 'ar' then
            return case
                when p_number = 1 then 'one' when v_hundreds between 3 and 10 then 'few'
                when v_hundreds between 11 and 99 then 'many' else 'other'
            end;
        when v_language in ('cs', 'sk') then
            return case when p_number = 1 then 'one' when p_number between 2 and 4 then 'few' else 'other' end;
        when v_language in ('be', 'ru', 'uk', 'bs', 'hr', 'sh', 'sr') then
            return case
                when v_tens = 1 and v_hundreds <> 11 then 'one'
                when v_tens between 2 and 4 and v_hundreds not between 12 and 14 then 'few'
                when v_language in ('be', 'ru', 'uk') then 'many'
                else 'other'
            end;
        when v_language = 'ga' then
            return case
                when p_number = 1 then 'one' when p_number between 3 and 6 then 'few'
                when p_number between 7 and 10 then 'many' else 'other'
            end;
        when v_language = 'lv' then
            return case when v_tens = 1 and v_hundreds <> 11 then 'one' else 'other' end;
        when v_language = 'lt' then
            return case
                when v_hundreds between 11 and 19 then 'other' when v_tens = 1 then 'one'
                when v_tens between 2 and 9 then 'few' else 'other'
            end;
        when v_language = 'mt' then
            return case
                when p_number = 1 then 'one' when p_number = 0 or v_hundreds between 3 and 10 then 'few'
                when v_hundreds between 11 and 19 then 'many' else 'other'
            end;
        when v_language = 'pl' then
            return case
                when p_number = 1 then 'one'
                when v_tens between 2 and 4 and v_hundreds not between 12 and 14 then 'few' else 'many'
            end;
        when v_language in ('mo', 'ro') then
            return case
                when p_number = 1 then 'one' when p_number = 0 or v_hundreds between 1 and 19 then 'few'
                else 'other'
            end;
        when v_language in ('dsb', 'hsb', 'sl') then
            return case when v_hundreds = 1 then 'one' when v_hundreds between 3 and 4 then 'few' else 'other' end;
        when v_language = 'cy' then
            return case p_number when 1 then 'one' when 3 then 'few' when 6 then 'many' else 'other' end;
        else
            return case when p_number = 1 then 'one' else 'other' end;
    end case;
end
$$;
