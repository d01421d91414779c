-- Returns when granted messages end, as a text.
create or replace function headroom.grant_end(p_expires_at timestamptz) returns text
    language sql stable
    return case
        when p_expires_at is null then 'with their period'
        when p_expires_at = 'infinity' then 'never'
        else headroom.instant_text(p_expires_at)
    end;
