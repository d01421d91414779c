-- $1 text: what is to be written, as JSON. answer: what becomes of the event, as JSON.
select headroom.write_customer($1::text::jsonb)::text as answer;
