"""Tables, figures and statistics: pure functions of records."""
