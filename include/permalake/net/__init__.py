"""Access to web services and object storage."""
