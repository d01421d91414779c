-- Returns the functions of schema headroom that views call, as a list for GRANT: PostgreSQL checks the reader's right
-- on each, even if it inlines a function, and whether a row is read or not. Functions in PL/pgSQL have rights of their
-- own.
create or replace function headroom.called_functions(p_views regclass[]) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        with recursive called (class, object) as (
            select 'pg_class'::regclass::oid, views.view::oid from unnest(p_views) as views (view)
            union
            select depend.refclassid, depend.refobjid
            from called
            left join pg_rewrite as rule on called.class = 'pg_class'::regclass and rule.ev_class = called.object
            join pg_depend as depend
                on depend.classid = 'pg_rewrite'::regclass and depend.objid = rule.oid
                    or depend.classid = 'pg_proc'::regclass and called.class = 'pg_proc'::regclass
                    and depend.objid = called.object
        )
        select string_agg(function.oid::regprocedure::text, ', ' order by function.oid::regprocedure::text)
        from called
        join pg_proc as function on called.class = 'pg_proc'::regclass and function.oid = called.object
        where function.pronamespace = 'headroom'::regnamespace
    );
end
$$;
