"""`hermetic audit`: its command, the files it reads, the sources it asks and the formats it writes."""
