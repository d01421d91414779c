-- Returns the number of messages that RESERVE holds now in a usage row. p_held is the number in the row: 0 if there are
-- no holds to read, otherwise it still includes holds that have expired since the row was written.
create or replace function headroom.held_messages(p_user_id uuid, p_billing_period text, p_held integer) returns integer
    language sql stable
    return case
        when p_held > 0 then (
            select least(holds.held, 2147483647)::integer
            from headroom.active_holds(p_user_id, p_billing_period, headroom.now()) as holds
        )
        else 0
    end;
