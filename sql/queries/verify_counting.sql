-- Verifies that messages can be counted. It changes nothing.
select headroom.verify_counting();
