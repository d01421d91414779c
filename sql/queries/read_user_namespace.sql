-- Reads the namespace of users' names. There is no row if the setting user-namespace was never set.
select namespace.id from headroom.user_namespace as namespace;
