-- Returns the label of a user's period, if the user has other rows of its month or week (p_base:
-- headroom.period_label), or later ones. A row that was never used counts as absent.
--
-- p_begins_at, p_resets_at: the dates of a period that was paid. Its row is the one that began with it; or one that
-- began later within it, written before the event of the payment arrived, unless another subscription began it; or one
-- that began at 00:00 of that day, as months of the calendar do. A new row has p_base, or p_base with the next number.
-- They are null for a period of the calendar, whose row is the newest one with p_base, so that an operator who changes
-- a plan keeps the count.
create or replace function headroom.row_label(
    p_user_id uuid, p_cycle text, p_base text, p_begins_at timestamptz, p_resets_at timestamptz
) returns text
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_label text;
begin
    with used as (
        select
            usage.billing_period as label, split_part(usage.billing_period, '.', 1) = p_base as has_base,
            coalesce(nullif(split_part(usage.billing_period, '.', 2), '')::integer, 1) as number,
            -- A row of an older client has no start.
            case
                when usage.started_at is not null then usage.started_at
                when usage.billing_period = p_base then p_begins_at
            end as started_at
        from public.message_usage as usage
        where usage.bucket = headroom.bucket_of(p_user_id) and usage.user_id = p_user_id
            and usage.billing_period >= p_base and headroom.label_cycle(usage.billing_period) = p_cycle
            and not headroom.is_unused_usage_row(
                usage.user_id, usage.billing_period, usage.message_count, usage.held, usage.released,
                usage.granted, usage.plan, usage.plan_limit, usage."limit" - coalesce(usage.extra, 0),
                usage.window_ends_at
            )
    )
    select coalesce(
        (
            select used.label from used
            where case
                when p_begins_at is null then used.has_base
                when used.started_at = date_trunc('day', p_begins_at, 'UTC') then true
                else used.started_at >= p_begins_at and used.started_at < p_resets_at and (
                    used.started_at = p_begins_at or not exists (
                        select from headroom.subscriptions as other
                        where other.bucket = headroom.bucket_of(p_user_id) and other.user_id = p_user_id
                            and other.period_started_at = used.started_at
                    )
                )
            end
            order by used.started_at = p_begins_at desc, used.started_at desc nulls last, used.number desc
            limit 1
        ),
        (select p_base || '.' || (max(used.number) + 1) from used where used.has_base),
        p_base
    ) into v_label;
    return v_label;
end
$$;
