-- Returns a change as text, such as "count 412 → 0, limit 800, period 2026-11". p_before is null for new values,
-- p_after for deleted ones.
create or replace function headroom.change_text(p_before jsonb, p_after jsonb) returns text
    language sql stable
begin atomic
    select string_agg(
        name || ' ' || case
            when before is null then after
            when after is null then case when p_after is null then before else before || ' → none' end
            when before = after then after
            else before || ' → ' || after
        end,
        ', ' order by name
    )
    from (
        select
            coalesce(old.key, new.key) as name,
            case when old.key is not null then coalesce(old.value, absent.word) end as before,
            case when new.key is not null then coalesce(new.value, absent.word) end as after
        from jsonb_each_text(p_before) as old
        full join jsonb_each_text(p_after) as new on new.key = old.key
        cross join lateral (
            select case coalesce(old.key, new.key) when 'limit' then 'unlimited' else 'none' end as word
        ) as absent
    ) as changes;
end;
