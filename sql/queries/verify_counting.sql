-- Proves that messages can be counted, and changes nothing.
select headroom.verify_counting();
