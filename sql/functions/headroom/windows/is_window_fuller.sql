-- Returns whether a user's window is fuller than the period, so that tier and reason are the window's. p_taken,
-- p_window_taken: messages counted or held. A null p_limit is unlimited; a null p_window_limit is no window. It is
-- false if both are used up.
create or replace function headroom.is_window_fuller(
    p_taken bigint, p_limit bigint, p_window_taken bigint, p_window_limit bigint
) returns boolean
    language sql immutable parallel safe
    return case
        when p_window_limit is null or p_taken >= p_limit then false
        when p_window_taken >= p_window_limit or p_limit is null then true
        else p_window_taken * p_limit > p_taken * p_window_limit
    end;
