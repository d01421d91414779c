-- Returns how full an allowance is, in whole percent, rounded down: from 100 on it is used up. It is null without a
-- limit. p_taken: messages counted or held. Of several allowances into which a message must fit, the fullest decides
-- the tier: greatest() of their percents. PostgreSQL inlines the function.
create or replace function headroom.taken_percent(p_taken bigint, p_limit bigint) returns bigint
    language sql immutable parallel safe
    return case when p_limit = 0 then 100 else p_taken * 100 / p_limit end;
