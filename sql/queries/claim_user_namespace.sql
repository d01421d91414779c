-- Stores or checks the namespace of users' names. $1 uuid: the setting user-namespace.
select headroom.claim_user_namespace($1::uuid);
