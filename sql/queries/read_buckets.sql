-- Reads which bucket each user belongs to, and the map's revision. headroom.bucket_of computes the same.
select map.buckets::integer[], map.moved, revised.buckets_revision
from headroom.bucket_map as map
cross join headroom.plan_revision as revised;
