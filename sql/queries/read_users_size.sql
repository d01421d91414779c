-- Reads the number of bytes that the tables of users take.
select headroom.users_size() as bytes;
