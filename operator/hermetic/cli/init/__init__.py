"""`hermetic init`: the files of a first installation, from a few answers."""
