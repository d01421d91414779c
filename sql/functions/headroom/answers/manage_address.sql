-- Returns the address where a user changes a subscription that was bought in p_store: the App Store's own page,
-- otherwise that of the setting headroom.manage_url, otherwise null. The service sets the setting for its own
-- connections. For psql and PostgREST, an operator does: alter database … set headroom.manage_url = '…'.
create or replace function headroom.manage_address(p_store text) returns text
    language sql stable
    return case
        when p_store in ('app_store', 'mac_app_store') then 'https://apps.apple.com/account/subscriptions'
        else nullif(current_setting('headroom.manage_url', true), '')
    end;
