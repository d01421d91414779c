-- Reads what is counted of limits for parts of users' messages. Parameters and result: headroom.read_parts. $6 boolean:
-- whether the rows are written next; those that are not there get a generation.
select
    read.ordinal, read.buckets_revision,
    case when $6::boolean then coalesce(read.generation, headroom.next_generation()) else 0 end as generation,
    read.used, read.held, read.window_opened_at, read.window_ends_at, read.window_used, read.window_held,
    read.holds_end_at
from headroom.read_parts($1::smallint, $2::uuid[], $3::text[], $4::text[], $5::text[]) as read
-- This is always true. Without it, Citus plans the call again each time.
where $1 is not null;
