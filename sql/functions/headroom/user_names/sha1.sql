-- Returns the SHA-1 (RFC 3174) of p_bytes, from which UUIDs of version 5 are made; it is not for security. PostgreSQL
-- has it only in an extension, which may be missing (docs/decisions/0032-names-of-users.md).
create or replace function headroom.sha1(p_bytes bytea) returns bytea
    language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp
as $$
declare
    v_length constant integer := octet_length(p_bytes);
    -- The message is filled to whole blocks of 64 bytes: a bit, zeros, and the length in bits.
    v_message constant bytea := p_bytes || '\x80'::bytea
        || decode(repeat('00', (119 - v_length % 64) % 64), 'hex') || int8send(v_length * 8::bigint);
    v_mask constant bigint := x'FFFFFFFF'::bigint;
    v_words bigint[];
    v_state bigint[] := array[
        x'67452301'::bigint, x'EFCDAB89'::bigint, x'98BADCFE'::bigint, x'10325476'::bigint, x'C3D2E1F0'::bigint
    ];
    v_a bigint;
    v_b bigint;
    v_c bigint;
    v_d bigint;
    v_e bigint;
    v_mixed bigint;
    v_next bigint;
begin
    for v_block in 0 .. octet_length(v_message) / 64 - 1 loop
        for i in 0 .. 15 loop
            v_words[i] := ('x' || encode(substr(v_message, v_block * 64 + i * 4 + 1, 4), 'hex'))::bit(32)::bigint;
        end loop;
        for i in 16 .. 79 loop
            v_next := v_words[i - 3] # v_words[i - 8] # v_words[i - 14] # v_words[i - 16];
            v_words[i] := ((v_next << 1) | (v_next >> 31)) & v_mask;
        end loop;
        v_a := v_state[1];
        v_b := v_state[2];
        v_c := v_state[3];
        v_d := v_state[4];
        v_e := v_state[5];
        for i in 0 .. 79 loop
            v_mixed := case
                when i < 20 then ((v_b & v_c) | ((v_b # v_mask) & v_d)) + x'5A827999'::bigint
                when i between 40 and 59 then ((v_b & v_c) | (v_b & v_d) | (v_c & v_d)) + x'8F1BBCDC'::bigint
                else (v_b # v_c # v_d) + case when i < 40 then x'6ED9EBA1'::bigint else x'CA62C1D6'::bigint end
            end;
            v_next := (((v_a << 5) | (v_a >> 27)) & v_mask) + v_mixed + v_e + v_words[i];
            v_e := v_d;
            v_d := v_c;
            v_c := ((v_b << 30) | (v_b >> 2)) & v_mask;
            v_b := v_a;
            v_a := v_next & v_mask;
        end loop;
        v_state := array[
            (v_state[1] + v_a) & v_mask, (v_state[2] + v_b) & v_mask,
            (v_state[3] + v_c) & v_mask, (v_state[4] + v_d) & v_mask,
            (v_state[5] + v_e) & v_mask
        ];
    end loop;
    return (
        select string_agg(substr(int8send(word), 5), '' order by place)
        from unnest(v_state) with ordinality as words (word, place)
    );
end
$$;
