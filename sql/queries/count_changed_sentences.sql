-- Counts the service's sentences that are missing or different in headroom.words. $1 text[]: words. $2, $3 text[]: the
-- sentence of each word for the number 1 (or null), and for other numbers.
select count(*)::integer as changed
from unnest($1::text[], $2::text[], $3::text[]) as own (word, one, other)
left join headroom.words as words on words.word = own.word
where (words.one, words.other) is distinct from (own.one, own.other);
