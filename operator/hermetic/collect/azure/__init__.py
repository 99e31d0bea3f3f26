"""Asks Azure Resource Manager and Resource Graph, and can do nothing but read.

    question (audit/estate) -> paths -> client (patience, pacing) -> wire (the one function that sends) -> answer

`wire` allows GET and the POST actions of one closed table, to one host. `client` decides when to try again, `pacing`
keeps below the quotas so that nobody else is throttled, `pages` and `operations` bring answers that come in pieces,
`registrations` tells a refused list of nothing from one that may not be read, `discovery` asks Resource Graph for what
lists do not show, `answering` puts it together. `opening` is the door.
"""
