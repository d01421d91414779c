-- Lists the tables of users.
select name from unnest(headroom.distributed_tables()) as tables (name);
