-- Returns a wait in words: its two largest units, rounded up to the minute, such as "2 hours 10 minutes".
create or replace function headroom.wait_text(p_seconds bigint) returns text
    language sql immutable parallel safe
begin atomic
    select string_agg(
        units.amount || ' ' || units.name || case when units.amount = 1 then '' else 's' end, ' ' order by units.rank
    )
    from (
        select unit.amount, unit.name, unit.rank
        from (select greatest(1, (p_seconds + 59) / 60) as minutes) as rounded
        cross join lateral (values
            (rounded.minutes / 1440, 'day', 1), (rounded.minutes % 1440 / 60, 'hour', 2),
            (rounded.minutes % 60, 'minute', 3)
        ) as unit (amount, name, rank)
        where rounded.minutes >= 1440 and unit.rank <= 2 or rounded.minutes < 1440 and unit.rank >= 2
    ) as units
    where units.amount > 0;
end;
