-- Reads the number of pages of message_usage, with which a scan of the table begins, and the calendar month by the
-- database's clock.
select
    pg_catalog.pg_relation_size('public.message_usage')
        / pg_catalog.current_setting('block_size')::bigint as pages,
    headroom.period_label('monthly', headroom.period_day('monthly', headroom.now(), 1, 'UTC')) as calendar_month;
