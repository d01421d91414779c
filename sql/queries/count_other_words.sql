-- How many of the service's words the database has otherwise, or not. $1 text[]: names. $2 text[]: templates.
select count(*)::integer
from unnest($1::text[], $2::text[]) as own (name, template)
left join headroom.words as words on words.name = own.name
where words.template is distinct from own.template;
