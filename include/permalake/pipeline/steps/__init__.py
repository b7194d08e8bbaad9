"""Steps that every domain shares."""
