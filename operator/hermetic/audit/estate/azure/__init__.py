"""Azure resources as models for the checks; field names are ARM's, in snake case. api-versions are pinned here.

An older version omits newer fields, and an omitted field looks harmless: raise a pin, never lower it.
"""
