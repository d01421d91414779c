-- Moves existing objects with the names of Headroom's functions and views out of the way, before these are created. The
-- first time it moves all such objects, and later those with a foreign owner, because `create or replace` would keep
-- the owner.
--
-- An application that counted messages before Headroom probably has its own increment_and_check_usage. Its callers now
-- call Headroom's function of the same name. The old one is moved to the schema headroom_set_aside instead of being
-- dropped, so that it can be restored. A trigger, policy or view that depends on it still works. A function body that
-- calls it by name calls Headroom's.
do $$
declare
    v_name text;
    v_is_first constant boolean := not exists (select from headroom.definitions);
begin
    for v_name in
        select pg_catalog.format('function %s', procedures.oid::pg_catalog.regprocedure)
        from pg_catalog.pg_proc as procedures
        where procedures.pronamespace = 'public'::pg_catalog.regnamespace
            and (procedures.proname, pg_catalog.oidvectortypes(procedures.proargtypes)) in (
                -- Calls of Headroom's function without its optional parameter would match it.
                ('increment_and_check_usage', 'uuid'),
                ('increment_and_check_usage', 'uuid, integer'),
                ('increment_and_check_usage', 'uuid, integer, text, uuid'),
                ('increment_and_check_usage', 'uuid, text, integer'),
                ('increment_and_check_usage', 'uuid, text, text'),
                ('reset_usage', 'uuid'),
                ('reset_usage', 'uuid, text'),
                ('reset_usage', 'uuid, text, text, uuid'),
                ('reset_billing_period', 'text'),
                ('set_plan', 'uuid, text, text, timestamp with time zone, timestamp with time zone, '
                    'timestamp with time zone, integer'),
                ('grant_messages', 'uuid, integer, text'),
                ('grant_messages', 'uuid, integer, text, text'),
                ('forget_user', 'uuid')
            )
            and (v_is_first or procedures.proowner <> 'headroom_owner'::pg_catalog.regrole)
        union all
        select pg_catalog.format(
            case relations.relkind when 'v' then 'view %s' when 'm' then 'materialized view %s' else 'table %s' end,
            relations.oid::pg_catalog.regclass
        )
        from pg_catalog.pg_class as relations
        where relations.relnamespace = 'public'::pg_catalog.regnamespace
            and relations.relname in ('current_usage', 'monthly_usage', 'audit_trail', 'billing_period_report')
            and relations.relkind in ('v', 'm', 'r', 'p', 'f')
            and (v_is_first or relations.relowner <> 'headroom_owner'::pg_catalog.regrole)
    loop
        if v_name like 'table %' then
            raise exception '% has the name of a view of Headroom''s: rename it, then migrate again', v_name
                using errcode = 'duplicate_table';
        end if;
        create schema if not exists headroom_set_aside;
        execute pg_catalog.format('alter %s set schema headroom_set_aside', v_name);
        raise warning '% was here before and is in the schema headroom_set_aside now; its callers reach Headroom''s: '
            'the role of users needs headroom_user, and a backend''s own role headroom_service', v_name;
    end loop;
end
$$;
