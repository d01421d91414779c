-- Returns the cycle of the plans that have a period of this label: monthly, weekly or daily. Null for other labels,
-- such as the name of a plan that never resets.
create or replace function headroom.label_cycle(p_label text) returns text
    language sql stable parallel safe
    return case pg_catalog.length(p_label)
        when 7 then case when headroom.label_day(p_label) is not null then 'monthly' end
        when 8 then case
            when p_label = headroom.period_label('weekly', headroom.label_day(p_label)) then 'weekly'
        end
        when 10 then case
            when p_label = headroom.period_label('daily', headroom.label_day(p_label)) then 'daily'
        end
    end;
grant execute on function headroom.label_cycle(text) to headroom_operator, headroom_dashboard;
