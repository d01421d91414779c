-- Reads all words and their revision, from one snapshot. A row without a word has the revision alone.
select revised.words_revision, words.lang, words.word, words.one, words.other, words.few, words.many
from headroom.plan_revision as revised
left join headroom.words as words on true;
