"""Read-only client of Azure Resource Manager and Resource Graph.

    question (audit/estate) -> paths -> client (retry_budget, rate_limits) -> transport (the one function that sends)

`transport` sends GET and the POST actions of the closed table in `allowed_requests`, to one host. `client` decides when
to retry; `rate_limits` keeps below the quotas, so that other users are not throttled; `pages` and `operations` read
paged and asynchronous answers; `registrations` distinguishes a list of an unregistered type from one that may not be
read; `discovery` asks Resource Graph for what lists do not show; `answering` combines them; `session` opens it all.
"""
