-- Updates the rows of used keys whose messages were committed or released. The transaction has locked the users.
-- Parameters: headroom.key_rows. A key that was deleted meanwhile, because it is old, is inserted again.
--
-- It is no UPDATE with a join, which may read the whole table if it was small when it was last analyzed.
insert into headroom.message_keys
select key.* from headroom.key_rows(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::bigint[],
    $9::integer[], $10::integer[], $11::integer[], $12::integer[], $13::integer[], $14::integer[], $15::integer[],
    $16::integer[], $17::timestamptz[], $18::integer[], $19::integer[], $20::integer[], $21::integer[],
    $22::integer[], $23::integer[], $24::text[]
) as key
on conflict (bucket, user_id, key) do update
set status = excluded.status, generation = excluded.generation, committed_messages = excluded.committed_messages,
    committed_used = excluded.committed_used, committed_held = excluded.committed_held,
    committed_limit = excluded.committed_limit, committed_window_used = excluded.committed_window_used,
    committed_window_held = excluded.committed_window_held, committed_window_limit = excluded.committed_window_limit,
    parts = excluded.parts;
