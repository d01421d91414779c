-- Maps an entitlement. $1 text: source. $2 text: entitlement. $3 text: plan. $4 text: trial plan. $5 text: plan of
-- introductory offers. The last two may be null. failed_events: events that failed because a product was not mapped.
select headroom.map_entitlement($1, $2, $3, $4, $5) as failed_events;
