-- Returns a user's balances in the order in which messages are taken from them: the one that ends first before the
-- others, of those the oldest. drawn: messages that "taken" does not have yet. returned: messages of holds that have
-- expired, which "taken" still has. messages: those that are left; 0 after the end.
--
-- p_drawn, p_first_end: what the usage row with the balances has taken from them, and its extra_expires: balances that
-- ended before were not among them. Null reads that row.
create or replace function headroom.user_balances(
    p_user_id uuid, p_at timestamptz, p_drawn integer default null, p_first_end timestamptz default null
) returns table (key text, drawn integer, returned integer, messages integer, expires_at timestamptz)
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_bucket constant smallint := headroom.bucket_of(p_user_id);
    v_drawn integer := p_drawn;
    v_first_end timestamptz := coalesce(p_first_end, 'infinity');
    v_returned jsonb;
begin
    if p_drawn is null then
        select
            headroom.drawn_messages(usage.message_count, usage.held, usage."limit", usage.extra, usage.usable_count),
            coalesce(usage.extra_expires, 'infinity')
        into v_drawn, v_first_end
        from public.message_usage as usage
        where usage.bucket = v_bucket and usage.user_id = p_user_id and usage.extra is not null
        limit 1;
    end if;
    select jsonb_object_agg(given.key, given.messages) into v_returned
    from (
        select holds.key, sum(holds.messages) as messages
        from headroom.expired_balance_holds(p_user_id, p_at) as holds
        group by holds.key
    ) as given;
    for key, returned, messages, expires_at in
        select
            grants.key, coalesce((v_returned ->> grants.key)::integer, 0), grants.messages - grants.taken,
            grants.expires_at
        from headroom.grants as grants
        where grants.bucket = v_bucket and grants.user_id = p_user_id and grants.expires_at is not null
        order by grants.expires_at, grants.granted_at, grants.key collate "C"
    loop
        drawn := case when expires_at >= v_first_end then least(coalesce(v_drawn, 0), messages) else 0 end;
        v_drawn := v_drawn - drawn;
        messages := case when expires_at > p_at then messages - drawn + returned else 0 end;
        return next;
    end loop;
end
$$;
