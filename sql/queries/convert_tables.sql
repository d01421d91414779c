-- Makes the tables tables of Citus, on this server for now.
select headroom.convert_tables();
