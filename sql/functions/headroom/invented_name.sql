-- Returns a random placeholder, 'forgotten:' and 64 hexadecimal digits. It replaces the names of a forgotten user.
create or replace function headroom.invented_name() returns text
    language sql volatile
begin atomic
    select 'forgotten:' || encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex');
end;
