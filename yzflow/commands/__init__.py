"""The commands of ``yzflow``: a module for each group, which is imported when one of its commands is asked for."""
