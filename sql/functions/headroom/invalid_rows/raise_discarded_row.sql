-- Raises an error about a row of one user that was written and is not there. HR006: the row is in a bucket in which
-- nobody looks for it, because the check constraint was removed. HR011: a trigger, a rule or a policy discards the row.
--
-- Functions that repeat until a row is there call it after some attempts. Each attempt waits for another session that
-- writes the same row, so a few are enough.
create or replace function headroom.raise_discarded_row(p_table text, p_user_id uuid) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    v_table constant text := replace(p_table, 'public.', '');
    v_is_in_other_bucket boolean;
begin
    execute format(
        'select exists (select from %s where user_id = $1 and bucket <> headroom.bucket_of($1))', p_table
    ) into v_is_in_other_bucket using p_user_id;
    if v_is_in_other_bucket then
        raise exception '%.bucket is out of range', v_table
            using errcode = 'HR006', hint = format(
                'select * from %s where bucket <> headroom.bucket_of(user_id) lists such rows. Set bucket to '
                'headroom.bucket_of(user_id), then add the check constraint again.', v_table
            );
    end if;
    raise exception 'a row that was written is not in %', v_table
        using errcode = 'HR011', hint = format(
            'A trigger, a rule or a policy discards it: \d %s lists them. Drop it, or let its function return NEW.',
            v_table
        );
end
$$;
