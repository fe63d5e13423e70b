"""The agent in a Python session: plain, IPython or a notebook."""
