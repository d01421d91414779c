-- What a row holds now. Its own number is as of its last message: holds that have ended by themselves since count in it.
create or replace function headroom.held_now(p_row public.message_usage) returns integer
    language sql stable
    return case
        when (p_row).held = 0 then 0
        else (
            select least(greatest(holds.held, 0), 2147483647)::integer
            from headroom.holds_of((p_row).user_id, (p_row).billing_period, headroom.now()) as holds
        )
    end;
revoke all on function headroom.held_now(public.message_usage) from public;
grant execute on function headroom.held_now(public.message_usage) to headroom_service, headroom_operator, headroom_dashboard;
