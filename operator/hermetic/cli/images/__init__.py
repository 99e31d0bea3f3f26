"""`hermetic images`: its command, what uses an image, where an image comes from, and lists for programs that copy."""
