-- Records an event whose effect the database refused: headroom.record_refused_event. $1 text: the event, as JSON.
-- $2 text[]: names of its customer. $3 boolean: this is a replay. answer: the outcome as JSON; null if a replay changes
-- nothing.
select headroom.record_refused_event($1::text::jsonb, $2::text[], $3)::text as answer;
