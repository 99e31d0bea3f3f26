"""Azure resources as the checks read them; field names are ARM's, in snake case. api-versions are pinned here.

A read with an older version leaves newer fields out, and what is left out looks innocent: raise a pin, never lower it.
"""
