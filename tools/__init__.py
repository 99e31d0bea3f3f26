"""Makes files of this repository from the code of the product, and is no part of it."""
