"""What the routers of the REST API share: problems, paging, responses, parameters, the request's state."""
