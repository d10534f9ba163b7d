"""Engines: they batch what the methods ask for. `base` holds the interfaces, one file per engine the rest."""
