-- Usage rows for dashboards. For an unlimited plan, remaining is null like the limit; greatest() would make it 0.
-- Instants are whole seconds, as in current_usage.
create or replace view public.monthly_usage as
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
comment on view public.monthly_usage is
    'A row per user and billing period. The period that counts for the user now is shown as it would be answered, the '
    'others as of their last message; "limit" null is unlimited; is_open is true for the period that counts now; a '
    'trial that is over is not open.';
grant select on public.monthly_usage to headroom_service, headroom_dashboard, headroom_operator;
