-- Counts the service's sentences that are missing or different in headroom.sentences. $1 text[]: keys. $2, $3 text[]:
-- the sentence of each key for the number 1 (or null), and for other numbers.
select count(*)::integer as changed
from unnest($1::text[], $2::text[], $3::text[]) as own (key, one, other)
left join headroom.sentences as sentences on sentences.key = own.key
where (sentences.one, sentences.other) is distinct from (own.one, own.other);
