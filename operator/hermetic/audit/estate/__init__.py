"""What was read of Azure, of the cluster and by the probe: typed, frozen, each fact with its evidence."""
