-- Returns whether CONSUME would allow p_messages for a user with this snapshot. p_parts: headroom.requested_parts.
create or replace function headroom.may_send(
    p_snapshot headroom.usage_snapshot, p_messages integer, p_parts headroom.part_usage[] default null
) returns boolean
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    return (p_snapshot).denial_reason is null and (
        headroom.snapshot_fits(p_snapshot, p_messages, p_parts) or headroom.is_unenforced((p_snapshot).plan)
    );
end
$$;
