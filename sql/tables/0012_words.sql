-- The sentences for users in any number of languages, as rows that operators edit.

create table headroom.words (
    lang text not null,
    word text not null,
    one text,
    other text not null,
    few text,
    many text,
    primary key (lang, word)
);
comment on table headroom.words is
    'The sentences for users, and the words in them. Edit freely: the next answer has them. docs/words.md explains it.';
comment on column headroom.words.lang is
    'The language by BCP 47, such as pt-BR. A word that it lacks is that of pt, of the setting language, or of en.';
comment on column headroom.words.word is 'The name of the sentence in the service, such as blocked_monthly.';
comment on column headroom.words.one is
    'For exactly 1, and for the category one of a language with more than two forms; null if it is the same as other.';
comment on column headroom.words.other is 'For other numbers, and for sentences about no number.';
comment on column headroom.words.few is 'For the category few of CLDR, in languages that have it; null is other.';
comment on column headroom.words.many is 'For the category many of CLDR, in languages that have it; null is other.';
grant select on headroom.words to headroom_service;
grant select, insert, update, delete on headroom.words to headroom_operator;

-- The words as this release ships them: headroom.restore_words, and what an upgrade may replace.
create table headroom.shipped_words (
    lang text not null,
    word text not null,
    one text,
    other text not null,
    few text,
    many text,
    primary key (lang, word)
);
grant select on headroom.shipped_words to headroom_service, headroom_operator;

-- What each word may have.
create table headroom.word_blanks (
    word text primary key,
    blanks text[] not null,
    number text
);
comment on column headroom.word_blanks.blanks is 'The blanks that its templates may have: {remaining}.';
comment on column headroom.word_blanks.number is
    'The blank whose number chooses among the forms; null if the word has one form.';
grant select on headroom.word_blanks to headroom_service, headroom_operator;
