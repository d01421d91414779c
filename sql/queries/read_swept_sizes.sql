-- Reads the number of pages of the tables that the sweep for notifications reads.
select
    headroom.usage_pages() as usage_pages,
    headroom.usage_pages('headroom.usage_parts') as part_pages;
