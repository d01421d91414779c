-- Reads the models ($1 = 'model') or the members ('member') of all accounts with the most messages in a billing period,
-- at most $3. $2 text: the period, which includes a user's second one in a month or week; null is all periods that are
-- open now. account: whose it is, if it is that of one account.
select
    parts.name,
    max(parts.label) as label,
    coalesce($2::text, 'open') as period,
    sum(parts.used) as used,
    sum(parts.held) as held,
    count(distinct parts.user_id) as accounts,
    count(distinct parts.user_id) filter (where parts.tier = 'blocked') as blocked,
    case when count(distinct parts.user_id) = 1 then min(parts.user_id::text) end as account
from headroom.part_usage_rows as parts
where parts.kind = $1 and case
    -- A join would read all rows for each one, if the tables were small when they were last analyzed.
    when $2::text is null then exists (
        select from headroom.usage_rows as usage
        where usage.bucket = parts.bucket and usage.user_id = parts.user_id and usage.billing_period = parts.period
            and not usage.has_ended and usage.is_open
    )
    else parts.period = $2 or headroom.unnumbered_label(parts.period) = $2
end
group by parts.name
order by used desc, parts.name asc
limit $3;
