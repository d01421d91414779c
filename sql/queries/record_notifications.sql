-- Records notifications of users who are at a tier. $1 uuid[]: users.
select headroom.record_notifications($1::uuid[], 'p') as recorded;
