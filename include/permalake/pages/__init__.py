"""Pages and figures about the lake, as text. Access control is left to the server."""
