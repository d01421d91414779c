-- Forgotten users keep what they used of plans that never reset, not only of trials.
comment on table headroom.spent_trials is
    'What forgotten users have spent and never get again: trials, and messages of plans that never reset.';
comment on column headroom.spent_trials.messages is 'Messages counted in the only period of the plan.';
