-- Returns whether counts may be imported into a period: it has begun somewhere, or is the only one of a plan that never
-- resets. $1 text: period.
select
    headroom.label_day($1) <= (headroom.now() at time zone 'UTC' + interval '14 hours')::date
    and headroom.label_cycle($1) is not null
    or exists (
        select from headroom.plans as plans where plans.plan = $1 and not headroom.is_periodic(plans.cycle)
    ) as is_valid;
