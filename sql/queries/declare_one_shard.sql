-- Declares the tables of users to be distributed by bucket, with one shard each.
select headroom.declare_one_shard();
