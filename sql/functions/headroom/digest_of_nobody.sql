-- A random digest, which no identity has: it takes the place of a forgotten user's.
create or replace function headroom.digest_of_nobody() returns text
    language sql volatile
begin atomic
    select 'sha256:' || encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex');
end;
revoke all on function headroom.digest_of_nobody() from public;
grant execute on function headroom.digest_of_nobody() to headroom_service;
