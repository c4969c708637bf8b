"""Shows objects in a notebook: pieces of HTML, and pages in frames. Does not depend on sessions or IPython."""
