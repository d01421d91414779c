-- Reads how many bytes the tables of users take.
select headroom.users_size() as bytes;
