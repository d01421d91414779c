-- Writes an open window into a usage row of an earlier period or plan: headroom.write_window. $1 uuid: user. $2 text:
-- period of the row. $3, $4 timestamptz: when it opened and when it ends. $5, $6 integer: messages counted and held.
select headroom.write_window(
    $1, $2,
    row(
        $2, $3::timestamptz, $4::timestamptz, $5::integer, $6::integer, null
    )::headroom.usage_window
);
