-- Writes a customer: headroom.write_customer. $1 text: the change, as JSON. answer: the outcome of the event, as JSON.
select headroom.write_customer($1::text::jsonb)::text as answer;
