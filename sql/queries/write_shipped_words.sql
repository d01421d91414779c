-- Writes the words of this release. Parameters: headroom.write_shipped_words.
select headroom.write_shipped_words(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[]
);
