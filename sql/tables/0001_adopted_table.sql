-- A message_usage that was there before Headroom: what makes it unfit is found before anything is changed.

-- Its triggers, defaults and constraints run with the rights of the role that writes to it: the one that migrates, and the
-- service's.
do $$
declare
    v_table constant oid := (
        select oid from pg_class where relnamespace = 'public'::regnamespace and relname = 'message_usage'
    );
    v_is_superuser constant boolean := (select rolsuper from pg_roles where rolname = current_user);
    v_what text;
    v_owner name;
    v_policy name;
    v_column record;
    v_rows bigint;
begin
    if v_table is null then
        return;
    end if;
    -- A role that is not a superuser may trust what it may act as; a superuser may act as everybody.
    select owned.what, owner.rolname into v_what, v_owner
    from (
        select 'message_usage' as what, relowner as owner from pg_class where oid = v_table
        union all
        select format('%s, the function of a trigger of message_usage,', function.oid::regprocedure), function.proowner
        from pg_trigger as trigger join pg_proc as function on function.oid = trigger.tgfoid
        where trigger.tgrelid = v_table and not trigger.tgisinternal
    ) as owned
    join pg_roles as owner on owner.oid = owned.owner
    where not owner.rolsuper and owner.rolname <> current_user
        and (v_is_superuser or not pg_has_role(owner.oid, 'USAGE'))
    limit 1;
    if found then
        raise exception '% belongs to %, and would run with the rights of %', v_what, v_owner, current_user
            using errcode = 'insufficient_privilege', hint = format(
                'Run headroom migrate as %I. Or look at the table''s triggers and defaults, make table and functions belong '
                'to %I (alter table message_usage owner to %I), and migrate again.', v_owner, current_user, current_user
            );
    end if;
    select polname into v_policy from pg_policy
    where polrelid = v_table and not polpermissive and polroles = '{0}';
    if found then
        raise exception 'the restrictive policy % on message_usage concerns every role, also headroom_service',
            quote_ident(v_policy)
            using hint = format(
                'Name the roles that it is for, alter policy %I on message_usage to …, and migrate again.', v_policy
            );
    end if;
    if exists (select from public.message_usage group by user_id, billing_period having count(*) > 1) then
        raise exception 'message_usage has several rows for the same user and period; merge them, then migrate again. '
            'select user_id, billing_period from message_usage group by 1, 2 having count(*) > 1 lists them';
    end if;
    -- What the service reads. Another type holds values that it cannot compute with, or not all that it can.
    select attribute.attname as name, format_type(attribute.atttypid, attribute.atttypmod) as type, wanted.type as wanted
    into v_column
    from (values
        ('message_count', 'integer'), ('limit', 'integer'), ('updated_at', 'timestamp with time zone')
    ) as wanted (name, type)
    join pg_attribute as attribute
        on attribute.attrelid = v_table and attribute.attname = wanted.name and not attribute.attisdropped
    where attribute.atttypid <> wanted.type::regtype
    limit 1;
    if found then
        raise exception 'message_usage.% is of type %, and must be of type %', v_column.name, v_column.type, v_column.wanted
            using hint = format(
                'alter table message_usage alter column %I type %s, then migrate again.', v_column.name, v_column.wanted
            );
    end if;
    -- The same as the check constraints in 0002_message_usage.sql, which would not say how to find the rows.
    for v_column in
        select * from (values
            ('message_count', 'is negative', 'message_count >= 0', '0'),
            ('limit', 'is negative', '"limit" >= 0', '0'),
            (
                'updated_at', 'is infinite or outside the years 2000 to 9999',
                'updated_at >= ''2000-01-01T00:00:00Z'' and updated_at < ''10000-01-01T00:00:00Z''', 'now()'
            )
        ) as rules (name, problem, condition, value)
    loop
        execute format('select count(*) from public.message_usage where not (%s)', v_column.condition) into v_rows;
        if v_rows > 0 then
            raise exception 'message_usage.% % in % of its rows', v_column.name, v_column.problem, v_rows
                using errcode = 'check_violation', hint = format(
                    'select * from message_usage where not (%s) lists them. Correct them, for example by update '
                    'message_usage set %I = %s where not (%s), then migrate again.',
                    v_column.condition, v_column.name, v_column.value, v_column.condition
                );
        end if;
    end loop;
end
$$;
