-- Reads the users with a model or a member at a tier of a period that is not over, in a range of the pages of
-- headroom.usage_parts. $1, $2 bigint: the first page, and the first page after the range.
select distinct parts.user_id
from headroom.part_usage_rows as parts
where parts.ctid >= ('(' || $1::bigint || ',0)')::tid and parts.ctid < ('(' || $2::bigint || ',0)')::tid
    and parts.is_open and parts.tier <> 'silent';
