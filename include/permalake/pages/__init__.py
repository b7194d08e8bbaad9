"""Pages and figures about the lake, as text: whoever serves them decides who may read them."""
