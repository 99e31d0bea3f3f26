"""Pure: a command line that starts an inference server elsewhere, as a ModelDeployment and notes about the rest."""
