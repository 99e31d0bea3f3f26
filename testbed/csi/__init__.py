"""CSI node plug-ins that serve volumes from a local folder."""
