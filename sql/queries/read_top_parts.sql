-- Reads the models ($1 = 'model') or the members ('member') of all accounts with the most messages in a billing period,
-- at most $3. $2 text: the period, which includes a user's second one in a month or week; null is this month (UTC).
-- account: whose it is, if it is that of one account.
select
    parts.name,
    max(parts.label) as label,
    asked.period,
    sum(parts.used) as used,
    sum(parts.held) as held,
    count(distinct parts.user_id) as accounts,
    count(distinct parts.user_id) filter (where parts.tier = 'blocked') as blocked,
    case when count(distinct parts.user_id) = 1 then min(parts.user_id::text) end as account
from (
    select
        'model' as kind, models.user_id, models.period, models.name, models.label, models.used, models.held, models.tier
    from headroom.usage_by_model as models
    union all
    select
        'member' as kind, members.user_id, members.period, members.name, null as label, members.used, members.held,
        members.tier
    from headroom.usage_by_member as members
) as parts
cross join (select coalesce($2::text, to_char(headroom.now() at time zone 'UTC', 'YYYY-MM')) as period) as asked
where parts.kind = $1 and (parts.period = asked.period or headroom.unnumbered_label(parts.period) = asked.period)
group by parts.name, asked.period
order by used desc, parts.name asc
limit $3;
