-- Counts the words of this release that differ from those that the last migration has shipped. $1, $2 text[]: languages
-- and words. $3 to $6 text[]: the forms one, other, few and many of each.
select count(*)::integer as changed
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    as own (lang, word, one, other, few, many)
left join headroom.shipped_words as shipped on shipped.lang = own.lang and shipped.word = own.word
where (shipped.one, shipped.other, shipped.few, shipped.many)
    is distinct from (own.one, own.other, own.few, own.many);
