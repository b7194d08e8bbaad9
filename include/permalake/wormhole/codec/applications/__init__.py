"""Messages of applications on Wormhole beyond the two bridges, decoded one by one."""
