"""Measurements as something to read: tables, charts, one page, CSV and JSON."""
