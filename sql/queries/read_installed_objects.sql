-- Lists Headroom's functions, views, tables, triggers and policies, with the facts that must stay as `headroom migrate`
-- has installed them. facts: a JSON object of texts, and an array of rights. "definition" is a checksum of PostgreSQL's
-- own text, which begins with the server's major version, because another version may write it differently.
with objects as (
    select
        format('function %s', oid::regprocedure) as object,
        jsonb_build_object(
            'owner', proowner::regrole, 'security', case when prosecdef then 'definer' else 'invoker' end,
            'settings', coalesce(array_to_string(proconfig, '; '), 'none')
        ) as facts,
        pg_get_functiondef(oid) as definition,
        coalesce(proacl, acldefault('f', proowner)) as acl,
        proowner as owner
    from pg_proc
    where prokind in ('f', 'p') and (
        pronamespace = 'headroom'::regnamespace
        or pronamespace = 'public'::regnamespace and proowner = to_regrole('headroom_owner')
    )
    union all
    select
        format('schema %s', nspname) as object, jsonb_build_object('owner', nspowner::regrole) as facts,
        null as definition, coalesce(nspacl, acldefault('n', nspowner)) as acl, nspowner as owner
    from pg_namespace where nspname = 'headroom'
    union all
    select
        format('%s %s', case relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end, oid::regclass)
            as object,
        jsonb_build_object('owner', relowner::regrole) as facts,
        case relkind when 'v' then concat(pg_get_viewdef(oid), reloptions) end as definition, null as acl,
        relowner as owner
    from pg_class
    where relkind in ('r', 'v', 'S') and (
        relnamespace = 'headroom'::regnamespace
        or relnamespace = 'public'::regnamespace and relkind = 'v' and relowner = to_regrole('headroom_owner')
    )
    union all
    -- Nothing else of message_usage is compared, because an adopted table's owner may change it.
    select
        format('table %s', oid::regclass) as object,
        jsonb_build_object('row level security', case when relrowsecurity then 'on' else 'off' end) as facts,
        null as definition, null as acl, relowner as owner
    from pg_class where oid = to_regclass('public.message_usage')
    union all
    select
        format('trigger %s on %s', quote_ident(trigger.tgname), trigger.tgrelid::regclass) as object,
        jsonb_build_object('state', case trigger.tgenabled when 'O' then 'enabled' else 'disabled' end) as facts,
        pg_get_triggerdef(trigger.oid) as definition, null as acl, class.relowner as owner
    from pg_trigger as trigger
    join pg_class as class on class.oid = trigger.tgrelid
    join pg_proc as function on function.oid = trigger.tgfoid
    where not trigger.tgisinternal and (
        class.relnamespace = 'headroom'::regnamespace
        or class.oid = to_regclass('public.message_usage') and function.pronamespace = 'headroom'::regnamespace
    )
    union all
    select
        format('policy %s on %s', quote_ident(polname), polrelid::regclass) as object, '{}' as facts,
        concat_ws(
            ' ', polcmd, polpermissive, polroles::regrole[], pg_get_expr(polqual, polrelid),
            pg_get_expr(polwithcheck, polrelid)
        ) as definition,
        null as acl, 0 as owner
    from pg_policy
    where polrelid = to_regclass('public.message_usage')
        and polname in ('headroom_service', 'headroom_operator', 'headroom_user', 'headroom_open_period')
)
select
    objects.object,
    objects.facts || jsonb_strip_nulls(jsonb_build_object(
        'definition',
        current_setting('server_version_num')::integer / 10000 || ':'
            || encode(sha256(convert_to(objects.definition, 'UTF8')), 'hex'),
        'rights', case when objects.acl is not null then (
            select coalesce(jsonb_agg(rights.name order by rights.name), '[]')
            from (
                select format(
                    '%s to %s%s', grants.privilege_type,
                    case grants.grantee when 0 then 'PUBLIC' else grants.grantee::regrole::text end,
                    case when grants.is_grantable then ' with grant option' else '' end
                ) as name
                from aclexplode(objects.acl) as grants where grants.grantee <> objects.owner
            ) as rights
        ) end
    )) as facts
from objects
