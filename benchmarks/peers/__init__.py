"""The same experiments written the obvious way in other libraries, for comparison."""
