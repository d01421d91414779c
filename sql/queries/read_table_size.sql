-- What a reading of the whole table begins with: how many pages it has by now, and the calendar month by the database's
-- clock.
select
    pg_catalog.pg_relation_size('public.message_usage')
        / pg_catalog.current_setting('block_size')::bigint as pages,
    headroom.month_label((headroom.now() at time zone 'UTC')::date) as calendar_month;
