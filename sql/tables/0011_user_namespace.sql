-- The namespace of users' names, which the setting user-namespace has: a name stands for the UUID of version 5
-- (RFC 9562) of the name in this namespace. No row: no service with the setting has started yet.
--
-- In another namespace all names would stand for other users, so no service starts with another one.
create table headroom.user_namespace (
    only_row boolean primary key default true,
    id uuid not null,
    constraint there_is_one_row check (only_row)
);
grant select on headroom.user_namespace to headroom_service, headroom_operator;
