-- Shows one row per user: the columns of message_usage, and the fields of the answer that CHECK would give now.
--
-- Instants are whole seconds, because the usual decoders of JSON in Swift refuse fractions. The columns of the answer
-- come from headroom.current_answer, which takes many times as long as the rest.
create or replace view public.current_usage as
select
    usage.user_id,
    usage.billing_period,
    usage.used as message_count,
    usage."limit",
    date_trunc('second', usage.updated_at) as updated_at,
    date_trunc('second', usage.started_at) as started_at,
    date_trunc('second', usage.resets_at) as resets_at,
    date_trunc('second', usage.expires_at) as expires_at,
    usage.is_open,
    (usage.answer).status as status,
    usage.user_id as user,
    usage.plan,
    usage.state,
    usage.tier,
    (usage.answer).display as display,
    usage.used,
    usage.held,
    case
        when usage.has_no_access then 0
        when usage."limit" is not null then greatest(usage."limit"::bigint - usage.used - usage.held, 0)::integer
    end as remaining,
    (usage.answer).extra as extra,
    (usage.answer).extra_expires as extra_expires,
    (usage.answer).window_limit as window_limit,
    (usage.answer).window_used as window_used,
    (usage.answer).window_remaining as window_remaining,
    (usage.answer).window_resets as window_resets,
    usage.billing_period as period,
    (usage.answer).resets as resets,
    (usage.answer).expires as expires,
    (usage.answer).day as day,
    (usage.answer).days as days,
    (usage.answer).crossed as crossed,
    (usage.answer).reason as reason,
    (usage.answer).retry_after as retry_after,
    (usage.answer).shadow as shadow,
    (usage.answer).previous_plan as previous_plan,
    (usage.answer).price as price,
    (usage.answer).currency as currency,
    (usage.answer).manage as manage
from headroom.current_periods as usage;
comment on view public.current_usage is
    'A row per user, true at once after a change of plan: the period that counts now, with the fields of the answer to '
    'CHECK. tier is blocked, and status BLOCKED, if the next message would be refused.';
