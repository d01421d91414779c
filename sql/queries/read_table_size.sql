-- Reads the number of pages of message_usage, with which a scan of the table begins, and the calendar month by the
-- database's clock.
select
    headroom.usage_pages() as pages,
    headroom.period_label('monthly', headroom.period_day('monthly', headroom.now(), 1, 'UTC')) as calendar_month;
