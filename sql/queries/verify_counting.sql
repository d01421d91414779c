-- Verifies that messages can be counted. Changes nothing.
select headroom.verify_counting();
