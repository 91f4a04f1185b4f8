"""Published numbers of a clone: studies run and stored, pages written and compared (``python -m yzflow.values``)."""
