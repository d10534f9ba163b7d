"""Where a run's configuration, running metrics and summary go besides its own files."""
