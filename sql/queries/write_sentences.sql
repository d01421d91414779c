-- Writes the service's sentences that have changed. $1 text[]: keys. $2, $3 text[]: the sentence of each key for the
-- number 1 (or null), and for other numbers.
insert into headroom.sentences as sentences (key, one, other)
select * from unnest($1::text[], $2::text[], $3::text[])
on conflict (key) do update set one = excluded.one, other = excluded.other
where (sentences.one, sentences.other) is distinct from (excluded.one, excluded.other);
