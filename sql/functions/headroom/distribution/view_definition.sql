-- Returns the statements that create a view again as it is: its query, options, owner and rights.
create or replace function headroom.view_definition(p_view regclass) returns text[]
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select array[
            format(
                'create view %s%s as %s', p_view,
                coalesce(' with (' || array_to_string(class.reloptions, ', ') || ')', ''), pg_get_viewdef(p_view)
            ),
            format('alter view %s owner to %s', p_view, class.relowner::regrole)
        ] || array(
            select format(
                'grant %s on %s to %s', grants.privilege_type, p_view,
                case grants.grantee when 0 then 'public' else grants.grantee::regrole::text end
            )
            from aclexplode(class.relacl) as grants where grants.grantee <> class.relowner
        )
        from pg_class as class where class.oid = p_view
    );
end
$$;
