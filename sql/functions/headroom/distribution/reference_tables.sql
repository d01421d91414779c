-- Returns the tables of which Citus keeps a copy on each machine, because functions read them beside the rows of users.
-- The triggers of a table read only tables that come before it.
create or replace function headroom.reference_tables() returns text[]
    language sql immutable
    return array[
        'headroom.word_blanks', 'headroom.shipped_words', 'headroom.secrets', 'headroom.user_namespace',
        'headroom.bucket_map', 'headroom.words', 'headroom.plans', 'headroom.plan_limits', 'headroom.plan_revision'
    ];
