-- Plans whose limit is counted and not enforced: how an operator introduces a limit.
alter table headroom.plans add column enforced boolean not null default true;
comment on column headroom.plans.enforced is
    'False: messages are counted and answered as usual, and never refused because of the allowance (shadow=1).';

-- Null is true, so that rows of other plans are not wider.
alter table public.message_usage add column enforced boolean;
comment on column public.message_usage.enforced is
    'False if messages beyond "limit" are counted too, because the plan''s limit is not enforced. Null is true.';

alter type headroom.entitlement add attribute enforced boolean;
-- Of an answer about counted messages: the plan's limit would have refused them if it were enforced. Else null.
alter type headroom.answer add attribute shadow boolean;
