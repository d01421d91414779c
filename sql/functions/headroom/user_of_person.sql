-- The user that a person is: a UUID is one already, a digest may be known as one.
create or replace function headroom.user_of_person(p_person text) returns uuid
    language sql immutable parallel safe
    return case when p_person not like '%:%' then p_person::uuid end;
revoke all on function headroom.user_of_person(text) from public;
grant execute on function headroom.user_of_person(text) to headroom_service;
