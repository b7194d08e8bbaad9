"""Shared by the routers of the REST API: problems, paging, responses, parameters, the request's state."""
