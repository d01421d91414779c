-- Returns a time as sentences say it: in minutes, rounded up, by its largest unit and the one below: 2 hours 10
-- minutes.
create or replace function headroom.format_wait(p_seconds bigint, p_languages text[]) returns text
    language sql stable
begin atomic
    select case
        when amount.smaller > 0 then replace(
            replace(
                headroom.template_of('wait_joined', p_languages, null), '{larger}',
                replace(
                    headroom.template_of(amount.unit, p_languages, amount.larger), '{n}', amount.larger::text
                )
            ),
            '{smaller}',
            replace(
                headroom.template_of(amount.unit_below, p_languages, amount.smaller), '{n}', amount.smaller::text
            )
        )
        else replace(headroom.template_of(amount.unit, p_languages, amount.larger), '{n}', amount.larger::text)
    end
    from (select greatest(1, (greatest(p_seconds, 0) + 59) / 60) as minutes) as wait
    cross join lateral (
        select
            case when wait.minutes >= 1440 then 'days' when wait.minutes >= 60 then 'hours' else 'minutes' end as unit,
            case when wait.minutes >= 1440 then 'hours' else 'minutes' end as unit_below,
            case
                when wait.minutes >= 1440 then wait.minutes / 1440 when wait.minutes >= 60 then wait.minutes / 60
                else wait.minutes
            end as larger,
            case
                when wait.minutes >= 1440 then wait.minutes % 1440 / 60 when wait.minutes >= 60 then wait.minutes % 60
                else 0
            end as smaller
    ) as amount;
end;
