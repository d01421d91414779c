-- Shows the rows of public.monthly_usage, of all users. For an unlimited plan, remaining is null like the limit;
-- greatest() would make it 0. Instants are whole seconds, as in current_usage.
create or replace view headroom.monthly_usage as
select
    usage.user_id,
    usage.billing_period,
    usage.plan,
    usage.state,
    usage.used,
    usage.held,
    usage."limit",
    case
        when usage.has_no_access then 0
        when usage."limit" is not null then greatest(usage."limit"::bigint - usage.used - usage.held, 0)::integer
    end as remaining,
    usage.tier,
    date_trunc('second', usage.resets_at) as resets_at,
    date_trunc('second', usage.expires_at) as expires_at,
    date_trunc('second', usage.updated_at) as updated_at,
    usage.is_open
from headroom.usage_rows as usage;
