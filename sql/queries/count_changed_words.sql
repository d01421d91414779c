-- How many of the service's words the database has otherwise, or not. $1 text[]: words. $2, $3 text[]: the sentence of each for
-- exactly 1, or null, and for any other number.
select count(*)::integer
from unnest($1::text[], $2::text[], $3::text[]) as own (word, one, other)
left join headroom.words as words on words.word = own.word
where (words.one, words.other) is distinct from (own.one, own.other);
