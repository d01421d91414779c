-- name: replay_notification
-- $1 text: the notification, translated anew, as JSON.
select answer.value ->> 'outcome' as outcome, answer.value ->> 'problem' as problem
from headroom.replay_store_notification($1::jsonb) as answer (value);
