"""What to ask the served API and how to judge it."""
