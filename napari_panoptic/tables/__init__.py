"""Tables and figures as text: each table one list of columns, without pages and windows."""
