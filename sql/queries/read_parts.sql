-- Reads what is counted of limits for parts of users' messages. Parameters and result: headroom.read_parts.
select
    read.ordinal, read.generation, read.is_new, read.used, read.held, read.window_opened_at, read.window_ends_at,
    read.window_used, read.window_held, read.holds_end_at
from headroom.read_parts($1::smallint, $2::uuid[], $3::text[], $4::text[], $5::text[]) as read
-- This is always true. Without it, Citus plans the call again each time.
where $1 is not null;
