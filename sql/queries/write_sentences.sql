-- Writes the service's sentences that have changed. $1 text[]: words. $2, $3 text[]: the sentence of each word for the
-- number 1 (or null), and for other numbers.
insert into headroom.words as words (word, one, other)
select * from unnest($1::text[], $2::text[], $3::text[])
on conflict (word) do update set one = excluded.one, other = excluded.other
where (words.one, words.other) is distinct from (excluded.one, excluded.other);
