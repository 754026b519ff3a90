"""A plan as text: compose file, env file, start script, manifest. Nothing else, and the same bytes every time."""
