"""A model of Headroom's throughput over several machines. script/scaling runs it."""
