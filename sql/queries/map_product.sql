-- Maps a product. $1 text: source. $2 text: product. $3 text: plan. $4 text: trial plan. $5 text: plan of introductory
-- offers. $6 integer: messages. $7 integer: days. All but the first two may be null. failed_events: events that failed
-- because this product was not mapped.
select headroom.map_product($1, $2, $3, $4, $5, $6, $7) as failed_events;
