"""The results of several clusters on one page: read from JSON reports, whatever run wrote them."""
