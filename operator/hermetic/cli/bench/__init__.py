"""`hermetic bench`: its command, the Job that it runs, and how the result is read and recorded."""
