"""How checks evaluate: the results of a check, the resources one by one, and findings with doubt applied."""
