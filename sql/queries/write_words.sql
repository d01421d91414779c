-- $1 text[]: names. $2 text[]: templates. Only what changed is written.
insert into headroom.words as words (name, template)
select * from unnest($1::text[], $2::text[])
on conflict (name) do update set template = excluded.template where words.template <> excluded.template;
