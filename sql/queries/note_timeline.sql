-- Notes on a superseded primary that its cluster has a newer timeline. $1 bigint: the cluster's system identifier; $2
-- bigint: the timeline.
insert into headroom.newest_timelines as noted (system_identifier, timeline, noted_at) values ($1, $2, headroom.now())
on conflict (system_identifier) do update set timeline = excluded.timeline, noted_at = excluded.noted_at
where noted.timeline < excluded.timeline;
